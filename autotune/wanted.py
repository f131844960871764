"""The list of what was asked for and not tuned: `ROOT/wanted.jsonl`, a line per question.

Lines are added by `best_config(on_miss="record")` and taken away by `autotune search --wanted`.
"""

from __future__ import annotations

import json
import os
import warnings
from typing import NamedTuple

from autotune.cache import Folder, locked, replace_file, writable_root
from autotune.device_names import is_same
from autotune.errors import CacheError, InputError
from autotune.model import DeviceInfo, Sizes

FILE = "wanted.jsonl"


class Wanted(NamedTuple):
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
        return json.dumps(self._asdict(), sort_keys=True) + "\n"


def note_wanted(cache: Folder | None, wanted: Wanted) -> None:
    """Add a question to the list of the cache in force, unless it is there; two processes lose nothing.

    A list that cannot be written is a warning, for whoever asked is answered all the same.
    """
    try:
        root = writable_root(cache)
        root.mkdir(parents=True, exist_ok=True)
        with locked(root):
            known = read_wanted(root)
            if wanted not in known:
                replace_file(root / FILE, "".join(one.line for one in (*known, wanted)))
    except (OSError, InputError, CacheError) as error:
        warnings.warn(f"what is wanted could not be noted: {error}", stacklevel=4)


def read_wanted(root: Folder) -> list[Wanted]:
    """The questions in the order they came; raises CacheError for a line that is none, or no text at all."""
    path = f"{os.fspath(root)}/{FILE}"
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as in cache
            return [_parse(json.loads(line)) for line in file]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CacheError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise CacheError(f"{path}: damaged: {error}; delete it, or the line that is no question") from None


def forget_wanted(root: Folder, done: Wanted) -> None:
    """Take a question off the list; raises CacheError when it cannot be read or written."""
    from pathlib import Path

    path = Path(root) / FILE
    try:
        with locked(Path(root)):
            left = [wanted.line for wanted in read_wanted(root) if wanted != done]
            replace_file(path, "".join(left))
    except OSError as error:
        raise CacheError(f"{path}: cannot be written: {error.strerror}") from None


def _parse(data: dict[str, object]) -> Wanted:
    wanted = Wanted(**data)  # type: ignore[arg-type]
    optional = (wanted.device, wanted.dtype)
    whole = isinstance(wanted.sizes, dict) and all(type(size) is int for size in wanted.sizes.values())
    if (
        not isinstance(wanted.kernel, str)
        or not whole
        or not all(isinstance(x, str | None) for x in optional)
    ):
        raise ValueError(f"expected kernel, device, dtype and sizes, found {str(data)[:80]}")
    return wanted
