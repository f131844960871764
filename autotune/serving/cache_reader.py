"""Memoised reading of cache files: a file is read again only after a change.

A reader serves one query and records the stamp of every file that the answer depends on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from errno import ENAMETOOLONG

from autotune.core.light_typing import Any, T
from autotune.core.records import DeviceInfo, KernelRecord
from autotune.errors import CacheError
from autotune.serving.cache import device_path, folders, read_device, read_record, record_path

Stamp = tuple[int, int, int] | None  # of a file, taken before it was read; None: it did not exist

_contents: dict[str, tuple[Stamp, Any]] = {}


class CacheReader:
    """Reads files through a memo that all readers share; `stamps` has the state of each requested file."""

    def __init__(self, choose: Callable[[KernelRecord], KernelRecord] = lambda record: record) -> None:
        """`choose` selects the results of a record that may answer the query."""
        self.stamps: dict[str, Stamp] = {}
        self._choose = choose

    def record(self, root: str, folder: str, kernel: str) -> KernelRecord | None:
        """A kernel's results on a device, or None."""
        path = record_path(root, folder, kernel)
        record = self._content(path, self._stamped(path), read_record)
        return None if record is None else self._choose(record)

    def device(self, root: str, folder: str) -> DeviceInfo:
        """The description of a device; needs no stamp, because it is only written with a record."""
        path = device_path(root, folder)
        return self._content(path, stamp(path), read_device) or read_device(path)

    def every_folder(self, root: str) -> list[str]:
        """The device folders, sorted."""
        self._stamped(root)
        return folders(root)

    def folders(self, root: str, kernel: str) -> list[str]:
        """The device folders with results for a kernel, sorted."""
        return [
            folder for folder in self.every_folder(root) if self._stamped(record_path(root, folder, kernel))
        ]

    def records(self, root: str, kernel: str) -> Iterator[tuple[str, KernelRecord]]:
        """The records of a kernel with their folders, read lazily."""
        for folder in self.folders(root, kernel):
            record = self.record(root, folder, kernel)
            if record is not None:
                yield folder, record

    def _content(self, path: str, current: Stamp, read: Callable[[str], T]) -> T | None:
        if current is None:
            return None
        known = _contents.get(path)
        if known is None or known[0] != current:
            _contents[path] = known = (current, read(path))
        content: T = known[1]
        return content

    def _stamped(self, path: str) -> Stamp:
        self.stamps[path] = current = stamp(path)
        return current


def stamp(path: str) -> Stamp:
    """Identifies the state of a file; None without a file; raises CacheError if it cannot be read."""
    try:
        found = os.stat(path)  # noqa: PTH116 - most of the cost of a memoised look-up
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == ENAMETOOLONG:  # device names may have any length
            return None
        raise CacheError(f"{path}: cannot be read: {error.strerror}") from None
    return found.st_mtime_ns, found.st_size, found.st_ino
