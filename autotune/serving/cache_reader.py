"""Files of caches, read once and again when they have changed.

A shelf is made for one question: it notes what every file was like that the answer depends on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from errno import ENAMETOOLONG
from typing import Any, TypeVar, cast

from autotune.core.records import DeviceInfo, KernelRecord
from autotune.errors import CacheError
from autotune.serving.cache import device_path, folders, read_device, read_record, record_path

_T = TypeVar("_T")
Stamp = tuple[int, int, int] | None  # of a file as it was before it was read; None: there was none

_contents: dict[str, tuple[Stamp, Any]] = {}


class CacheReader:
    """Reads through a memo that all shelves share; `stamps` are of the files that were asked for."""

    def __init__(self) -> None:
        self.stamps: dict[str, Stamp] = {}

    def record(self, root: str, folder: str, kernel: str) -> KernelRecord | None:
        """A kernel's results on a device, None when there are none."""
        path = record_path(root, folder, kernel)
        return self._content(path, self._note(path), read_record)

    def device(self, root: str, folder: str) -> DeviceInfo:
        """What the cache says of a device; not noted, for whoever stores it stores a record too."""
        path = device_path(root, folder)
        return self._content(path, stamp(path), read_device) or read_device(path)

    def every_folder(self, root: str) -> list[str]:
        """The device folders, sorted."""
        self._note(root)
        return folders(root)

    def folders(self, root: str, kernel: str) -> list[str]:
        """The device folders with results for a kernel, sorted."""
        return [folder for folder in self.every_folder(root) if self._note(record_path(root, folder, kernel))]

    def records(self, root: str, kernel: str) -> Iterator[tuple[str, KernelRecord]]:
        """All results for a kernel with their folders, read as they are asked for."""
        for folder in self.folders(root, kernel):
            record = self.record(root, folder, kernel)
            if record is not None:
                yield folder, record

    def _content(self, path: str, now: Stamp, read: Callable[[str], _T]) -> _T | None:
        if now is None:
            return None
        known = _contents.get(path)
        if known is None or known[0] != now:
            _contents[path] = known = (now, read(path))
        return cast(_T, known[1])

    def _note(self, path: str) -> Stamp:
        self.stamps[path] = now = stamp(path)
        return now


def stamp(path: str) -> Stamp:
    """What tells a file from another or a later one; raises CacheError where that cannot be found out."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a hot look-up is one call of this and little else
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == ENAMETOOLONG:  # a device may be called anything
            return None
        raise CacheError(f"{path}: cannot be read: {error.strerror}") from None
    return found.st_mtime_ns, found.st_size, found.st_ino
