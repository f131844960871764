"""Reads cache files for one query, and notes the stamp of every file that the answer depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from autotune.core.records import DeviceInfo, KernelRecord
from autotune.serving.cache import Stamp, device_path, folders, read_device, read_record, record_path, stamp


class CacheReader:
    """Reads files; `stamps` has the state of each file that was asked for."""

    def __init__(self, choose: Callable[[KernelRecord], KernelRecord] = lambda record: record) -> None:
        """`choose` selects the results of a record that may answer the query."""
        self.stamps: dict[str, Stamp] = {}
        self._choose = choose

    def record(self, root: str, folder: str, kernel: str) -> KernelRecord | None:
        """A kernel's results on a device, or None."""
        path = record_path(root, folder, kernel)
        return None if self._stamped(path) is None else self._choose(read_record(path))

    def device(self, root: str, folder: str) -> DeviceInfo:
        """The description of a device. It needs no stamp: its file is only written together with a record."""
        return read_device(device_path(root, folder))

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

    def _stamped(self, path: str) -> Stamp:
        self.stamps[path] = current = stamp(path)
        return current
