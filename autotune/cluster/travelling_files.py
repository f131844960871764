"""Copies of the searching machine's files on another one: the reference, stored inputs and stored results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from autotune.evaluation.work_item import WorkItem
from autotune.problem.workload import Workload


def paths_of(workloads: Iterable[Workload]) -> Iterator[str]:
    """The files that workloads read."""
    for workload in workloads:
        yield from (array.path for array in workload.arrays if array.path)
        yield from (stored.path for _, stored in workload.expected or ())


class TravellingFiles:
    """Copies, in a folder, of the files that this machine does not have."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies: dict[str, str] = {}

    def add(self, files: Mapping[str, bytes]) -> None:
        """Take files by their absolute path on the searching machine."""
        for path, content in files.items():
            if not _has_content(path, content):
                folder = self._folder / hashlib.sha256(path.encode()).hexdigest()[:16]
                folder.mkdir(exist_ok=True)
                copy = folder / Path(path).name
                copy.write_bytes(content)
                self._copies[path] = str(copy)

    def path(self, path: str) -> str:
        """The file's path on this machine."""
        return self._copies.get(path, path)

    def workload(self, workload: Workload) -> Workload:
        """A workload that reads this machine's files."""
        if not self._copies:
            return workload
        expected = workload.expected
        if expected is not None:
            expected = tuple((name, replace(file, path=self.path(file.path))) for name, file in expected)
        arrays = tuple(replace(array, path=self.path(array.path)) for array in workload.arrays)
        return replace(workload, arrays=arrays, expected=expected)

    def item(self, item: WorkItem) -> WorkItem:
        """A work item that reads this machine's files."""
        if not self._copies:
            return item
        incumbent = item.incumbent
        if incumbent is not None:
            incumbent = replace(incumbent, workload=self.workload(incumbent.workload))
        *verified, timed = map(self.workload, (*item.verify_workloads, item.workload))
        return replace(item, verify_workloads=tuple(verified), workload=timed, incumbent=incumbent)


def _has_content(path: str, content: bytes) -> bool:
    try:
        return Path(path).read_bytes() == content
    except OSError:
        return False
