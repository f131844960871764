"""The list of cache misses: `ROOT/wanted.jsonl`, one line each.

`best_config(on_miss="record")` adds lines, and `autotune search --wanted` removes them.
"""

from __future__ import annotations

import json
import os
import warnings
from typing import NamedTuple

from autotune.core import json_values as values
from autotune.core.c_types import C_TYPES
from autotune.core.records import DeviceInfo, Sizes
from autotune.errors import CacheError, InputError
from autotune.hardware.names import is_same
from autotune.serving.cache import Folder, read_text, writable_root

FILE = "wanted.jsonl"


class CacheMiss(NamedTuple):
    """A query without an EXACT match; `device` (a slug) and `dtype` are None if they were not given."""

    kernel: str
    device: str | None
    dtype: str | None
    sizes: Sizes
    data: str = ""  # name of the inputs' content; empty: not said

    def is_for(self, device: DeviceInfo) -> bool:
        """True if the query was for this device, or for any."""
        return self.device is None or self.device == device.slug or is_same(self.device, device.name)

    @property
    def line(self) -> str:
        """The miss as a line of the file."""
        fields = {name: value for name, value in self._asdict().items() if name != "data" or value}
        return json.dumps(fields, sort_keys=True) + "\n"


def record_miss(cache: Folder | None, miss: CacheMiss) -> None:
    """Add a miss to the list of the writable cache, only once, even from several processes.

    If the list cannot be written, it only warns: the query is still answered.
    """
    from autotune.processes.files import locked, replace_file

    try:
        _parse(miss._asdict())
        root = writable_root(cache)
        root.mkdir(parents=True, exist_ok=True)
        with locked(root):
            known = read_misses(root)
            if miss not in known:
                replace_file(root / FILE, "".join(item.line for item in (*known, miss)))
    except (OSError, ValueError, InputError, CacheError) as error:
        warnings.warn(f"could not record the cache miss: {error}", stacklevel=5)  # the caller of best_config


def read_misses(root: Folder) -> list[CacheMiss]:
    """The misses in the order they came; raises CacheError for a damaged line or file."""
    path = f"{os.fspath(root)}/{FILE}"
    if not os.path.lexists(path) and not os.path.isfile(root):  # noqa: PTH113 - as in cache
        return []
    try:
        return [_parse(values.load(line)) for line in read_text(path).splitlines()]
    except ValueError as error:
        raise CacheError(f"{path}: damaged: {error}; delete it, or the damaged line") from None


def forget_miss(root: Folder, done: CacheMiss) -> None:
    """Remove a miss from the list; raises CacheError when it cannot be read or written."""
    from pathlib import Path

    from autotune.processes.files import locked, replace_file, writing

    path = Path(root) / FILE
    with writing(path, CacheError), locked(Path(root)):
        left = [miss.line for miss in read_misses(root) if miss != done]
        replace_file(path, "".join(left))


_READERS = {
    "kernel": values.name,
    "device": values.nullable(values.slug),
    "dtype": values.nullable(values.choice(C_TYPES)),
    "sizes": values.mapping_of(values.size, values.name),
    "data": values.text,
}


def _parse(data: object) -> CacheMiss:
    return values.record(CacheMiss, _READERS, ("data",), data, "")
