"""The list of what was asked for and not tuned: `ROOT/wanted.jsonl`, a line per question.

Lines are added by `best_config(on_miss="record")` and taken away by `autotune search --wanted`.
"""

from __future__ import annotations

import json
import os
import warnings
from typing import NamedTuple

from autotune.core import json_values as values
from autotune.core.launch_plan import C_TYPES
from autotune.core.records import DeviceInfo, Sizes
from autotune.errors import CacheError, InputError
from autotune.hardware.names import is_same
from autotune.serving.cache import Folder, read_text, writable_root

FILE = "wanted.jsonl"


class CacheMiss(NamedTuple):
    """One question without an exact answer; device (a slug) and dtype None: not said."""

    kernel: str
    device: str | None
    dtype: str | None
    sizes: Sizes

    def is_for(self, device: DeviceInfo) -> bool:
        """Whether a device is the one that was asked for."""
        return self.device is None or self.device == device.slug or is_same(self.device, device.name)

    @property
    def line(self) -> str:
        """The question as it stands in the file."""
        question = {"kernel": self.kernel, "device": self.device, "dtype": self.dtype, "sizes": self.sizes}
        return json.dumps(question, sort_keys=True) + "\n"


def record_miss(cache: Folder | None, wanted: CacheMiss) -> None:
    """Add a question to the list of the cache in force, unless it is there; two processes lose nothing.

    A list that cannot be written is a warning, for whoever asked is answered all the same.
    """
    from autotune.processes.files import locked, replace_file

    try:
        _parse(wanted._asdict())
        root = writable_root(cache)
        root.mkdir(parents=True, exist_ok=True)
        with locked(root):
            known = read_misses(root)
            if wanted not in known:
                replace_file(root / FILE, "".join(one.line for one in (*known, wanted)))
    except (OSError, ValueError, InputError, CacheError) as error:
        warnings.warn(f"what is wanted could not be noted: {error}", stacklevel=4)


def read_misses(root: Folder) -> list[CacheMiss]:
    """The questions in the order they came; raises CacheError for a line that is none, or no text at all."""
    path = f"{os.fspath(root)}/{FILE}"
    if not os.path.lexists(path) and not os.path.isfile(root):  # noqa: PTH113 - as in cache
        return []
    try:
        return [_parse(values.load(line)) for line in read_text(path).splitlines()]
    except ValueError as error:
        raise CacheError(f"{path}: damaged: {error}; delete it, or the line that is no question") from None


def forget_miss(root: Folder, done: CacheMiss) -> None:
    """Take a question off the list; raises CacheError when it cannot be read or written."""
    from pathlib import Path

    from autotune.processes.files import locked, replace_file

    path = Path(root) / FILE
    try:
        with locked(Path(root)):
            left = [wanted.line for wanted in read_misses(root) if wanted != done]
            replace_file(path, "".join(left))
    except OSError as error:
        raise CacheError(f"{path}: cannot be written: {error.strerror}") from None


_READERS = {
    "kernel": values.name,
    "device": values.nullable(values.slug),
    "dtype": values.nullable(values.choice(C_TYPES)),
    "sizes": values.mapping_of(values.size, values.name),
}


def _parse(data: object) -> CacheMiss:
    return values.record(CacheMiss, _READERS, (), data, "")
