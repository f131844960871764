"""What is already known of a kernel elsewhere: on other devices, at other sizes, with other element types.

Read from the caches, as `holdings` walks them, and from the journals in `runs/`. Only configurations that
are valid here count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from autotune.core.records import Config, Entry
from autotune.errors import AutotuneError
from autotune.evaluation.identity import header_sizes
from autotune.evaluation.journal import read_journal
from autotune.hardware.names import Traits, traits_of, traits_of_name
from autotune.searchers.base import SourceResults
from autotune.serving.cache import read_roots
from autotune.serving.cache_reader import CacheReader
from autotune.serving.device_records import first_of_each, walk
from autotune.tuning.task import TuningTask

RUNS = Path("runs")
MAX_SOURCES = 8  # sources: each costs the search a model of its own

_Times = dict[Config, float | None]


def gather(
    task: TuningTask, cache: Path | None, own_journal: Path, runs: Path = RUNS
) -> tuple[SourceResults, ...]:
    """One prior for each device and problem with results of this kernel; the one with the most comes first.

    cache: as `--cache`; own_journal: that of the search itself, which is left out, as is all that was found
    out on this device for this problem. Files that cannot be read are left out.
    """
    here = _source(task.device.name, task.space.problem.sizes, task.space.problem.dtype)
    known: dict[str, _Times] = {}
    kinds: dict[str, Traits] = {}
    for source, traits, times in (*_cached(task, cache), *_journaled(task, own_journal, runs)):
        if source != here:
            valid = {config: time_ms for config, time_ms in times.items() if config in task.space}
            known.setdefault(source, {}).update(valid)
            kinds.setdefault(source, traits)
    ordered = sorted(known.items(), key=lambda item: (-_timed(item[1]), item[0]))
    return tuple(
        SourceResults(source, tuple(times.items()), kinds[source])
        for source, times in ordered[:MAX_SOURCES]
        if _timed(times)
    )


def summary(priors: Iterable[SourceResults]) -> str:
    """What a search starts from, in one line; empty where there is nothing."""
    sources = [f"{prior.source} ({len(prior.results):,})" for prior in priors]
    if not sources:
        return ""
    return f"started from {len(sources)} other result{'s'[: len(sources) > 1]}: {'; '.join(sources)}"


def _cached(task: TuningTask, cache: Path | None) -> Iterator[tuple[str, Traits, _Times]]:
    found = walk(CacheReader(), read_roots(cache), task.spec.kernel, skip_damaged=True)
    for holder in first_of_each(found):
        traits = traits_of(holder.device)
        for entry in holder.record.entries:
            source = _source(holder.device.name, entry.sizes, entry.dtype)
            yield source, traits, _entry_times(entry, holder.record.default)


def _entry_times(entry: Entry, default: Config) -> _Times:
    times: _Times = dict.fromkeys(entry.ties, entry.time_ms)
    if entry.default_time_ms is not None:
        times[default] = entry.default_time_ms
    return times | dict(entry.measured) | {entry.config: entry.time_ms}


def _journaled(task: TuningTask, own: Path, runs: Path) -> Iterator[tuple[str, Traits, _Times]]:
    for path in sorted(runs.glob("*.jsonl")) if runs.is_dir() else ():
        if path.resolve() == own.resolve():
            continue
        with suppress(AutotuneError):
            header, trials = read_journal(path)
            if header.get("kernel") == task.spec.kernel:
                traits = traits_of_name(str(header.get("device", "")))
                device, dtype = str(header.get("device", "?")), str(header.get("dtype", ""))
                source = _source(device, header_sizes(header) or {}, dtype)
                yield source, traits, {trial.config: trial.time_ms for trial in trials}


def _source(device: str, sizes: Mapping[str, int], dtype: str) -> str:
    named = [f"{name}={size}" for name, size in sorted(sizes.items())]
    return ", ".join(filter(None, (device, *named, dtype)))


def _timed(times: _Times) -> int:
    return sum(time_ms is not None for time_ms in times.values())
