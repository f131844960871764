"""List the results of caches and the journals of searches, each with its age."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from autotune.core.records import Entry, Sizes
from autotune.core.trials import Objective, Status
from autotune.devices.listing import find_devices
from autotune.errors import AutotuneError
from autotune.evaluation.identity import header_sizes
from autotune.evaluation.journal import JournalContent, read_journal
from autotune.plans.aged_results import present_provenance
from autotune.serving.cache import (
    device_path,
    folders,
    kernels,
    objective_root,
    read_device,
    read_record,
    record_path,
)
from autotune.serving.query import changes, stale_reasons


@dataclass(frozen=True)
class StoredResult:
    """One result of a cache."""

    cache: str
    device: str
    kernel: str
    objective: str
    entry: Entry
    stale: tuple[str, ...]  # what has changed since, as far as the cache itself tells


@dataclass(frozen=True)
class JournalSummary:
    """The content of a search's journal, in short."""

    path: Path
    kernel: str
    device: str
    sizes: Sizes
    dtype: str
    trials: int
    failed: int
    best_ms: float | None  # in the last round, if there was one
    written_at: float  # seconds since the epoch
    is_concluded: bool  # by a last round


@dataclass(frozen=True)
class Inventory:
    """All results and journals, and a reason for each file that could not be read.

    `kernels` are all that have results or journals, also where those of one are listed.
    """

    results: tuple[StoredResult, ...]
    journals: tuple[JournalSummary, ...]
    unreadable: tuple[str, ...]
    kernels: frozenset[str]


def inventory(roots: Iterable[str], journals: Path, kernel: str | None = None) -> Inventory:
    """List what caches and the journals of a folder hold, of one kernel or of all.

    Damaged files are named and skipped, and caches that do not exist are empty. What several of them hold is
    listed once.
    """
    unreadable: list[str] = []
    every_kernel: set[str] = set()
    distinct = {Path(root).resolve(): root for root in reversed(tuple(roots))}  # a checkout's are one folder
    results: dict[str, StoredResult] = {}  # of caches that hold the same result, the first one's
    for root in reversed(distinct.values()):
        for result in _results(root, kernel, every_kernel, unreadable):
            results.setdefault(repr(replace(result, cache="")), result)
    summaries = []
    for path in sorted(journals.rglob("*.jsonl")):
        try:
            summary = journal_summary(path)
        except AutotuneError as error:
            unreadable.append(str(error))
        else:
            every_kernel.add(summary.kernel)
            if kernel in (None, summary.kernel):
                summaries.append(summary)
    return Inventory(tuple(results.values()), tuple(summaries), tuple(unreadable), frozenset(every_kernel))


def only_stale(results: Iterable[StoredResult]) -> tuple[StoredResult, ...]:
    """The results that have aged, with the reasons; for devices of this machine its present tools count."""
    here = {device.name: (address, device) for address, device in find_devices()}
    present = cache(present_provenance)
    aged = []
    for result in results:
        reasons = dict.fromkeys(result.stale)
        if result.device in here:
            now = present(result.kernel, *here[result.device])
            reasons |= dict.fromkeys(changes(result.entry.provenance, now))
        if reasons:
            aged.append(replace(result, stale=tuple(reasons)))
    return tuple(aged)


def _results(
    root: str, kernel: str | None, every_kernel: set[str], unreadable: list[str]
) -> Iterator[StoredResult]:
    """The results of a cache; adds the names of its kernels, and why files could not be read."""
    own = Path(root).glob(f"{Path(objective_root(root, Objective.OWN.value)).name}-*")
    names = [objective.value for objective in Objective if objective is not Objective.OWN]
    for objective in (*names, *sorted(path.name.partition(".")[2] for path in own)):
        folder = objective_root(root, objective)
        present = kernels(folder)
        every_kernel.update(present)
        for name in present if kernel is None else [kernel]:
            for device in folders(folder):
                path = record_path(folder, device, name)
                if not Path(path).exists():
                    continue
                try:
                    record, known = read_record(path), read_device(device_path(folder, device))
                except AutotuneError as error:
                    unreadable.append(str(error))
                    continue
                for entry in record.entries:
                    yield StoredResult(
                        cache=root,
                        device=known.name,
                        kernel=name,
                        objective=entry.provenance.objective or objective,
                        entry=entry,
                        stale=stale_reasons(entry, record, known),
                    )


def journal_summary(path: Path, read: Callable[[Path], JournalContent] = read_journal) -> JournalSummary:
    """Summarise a journal; raises InputError or JournalError if it cannot be read."""
    content = read(path)
    header, trials = content.header, content.trials
    times_ms = [measured.median_ms for measured in content.last_round.measurements.values()] or [
        trial.time_ms for trial in trials if trial.time_ms is not None
    ]
    return JournalSummary(
        path=path,
        kernel=str(header.get("kernel", "")),
        device=str(header.get("device", "")),
        sizes=header_sizes(header) or {},
        dtype=str(header.get("dtype", "")),
        trials=len(trials),
        failed=sum(trial.status is not Status.OK for trial in trials),
        best_ms=min(times_ms, default=None),
        written_at=path.stat().st_mtime,
        is_concluded=content.is_concluded,
    )
