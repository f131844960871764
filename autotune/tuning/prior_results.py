"""Results of the same kernel on other devices, at other sizes and with other element types.

They are read from the caches and from the journals in `runs/`, without configurations that are invalid here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from autotune.core.records import Config
from autotune.core.runs_folder import RUNS
from autotune.core.text import count_text
from autotune.core.trials import Status
from autotune.errors import AutotuneError
from autotune.evaluation.identity import header_sizes
from autotune.evaluation.journal import read_journal
from autotune.hardware.names import Traits, traits_of, traits_of_name
from autotune.searchers.base import PriorResults
from autotune.serving.cache import read_roots
from autotune.serving.cache_reader import CacheReader
from autotune.serving.device_records import first_of_each, walk
from autotune.tuning.journaled_task import default_journal
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask

MAX_PRIORS = 8  # each costs the search a model of its own

_Times = dict[Config, float | None]


def gather_priors(
    task: TuningTask, options: Options, ignored: Iterable[TuningTask] = ()
) -> tuple[PriorResults, ...]:
    """Collect results of this kernel, one source for each other device and problem; the largest comes first.

    Results for the device and problem of the task, or of one to ignore, do not count, nor do files that
    cannot be read.
    """
    left_out = {origin_of(other) for other in (task, *ignored)}
    times_by_origin: dict[str, _Times] = {}
    devices: dict[str, Traits] = {}
    for origin, traits, times in (
        *_from_caches(task, options.cache),
        *_from_journals(task, options.journal or default_journal(task)),
    ):
        if origin not in left_out:
            valid = {config: time_ms for config, time_ms in times.items() if config in task.space}
            times_by_origin.setdefault(origin, {}).update(valid)
            devices.setdefault(origin, traits)
    ordered = sorted(times_by_origin.items(), key=lambda item: (-_timed(item[1]), item[0]))
    return tuple(
        PriorResults(origin, tuple(times.items()), devices[origin])
        for origin, times in ordered[:MAX_PRIORS]
        if _timed(times)
    )


def recommended_configs(task: TuningTask) -> list[Config]:
    """Valid configurations of imported journals that have no times: other projects' files name only these."""
    configs: dict[Config, None] = {}
    for path in sorted(RUNS.glob("*.imported.jsonl")):
        with suppress(AutotuneError):
            header, trials, *_ = read_journal(path)
            if header.get("kernel") == task.spec.kernel:
                untimed = (
                    trial.config for trial in trials if trial.status is Status.OK and trial.time_ms is None
                )
                configs |= dict.fromkeys(config for config in untimed if config in task.space)
    return list(configs)


def priors_text(priors: Sequence[PriorResults]) -> str:
    """What a search starts from: `started from 1 other result: NVIDIA A100, n=1000 (12)`; may be empty."""
    named = "; ".join(f"{prior.origin} ({len(prior.results):,})" for prior in priors)
    return f"started from {count_text(len(priors), 'other result')}: {named}" if priors else ""


def _from_caches(task: TuningTask, cache: Path | None) -> Iterator[tuple[str, Traits, _Times]]:
    records = walk(CacheReader(), read_roots(cache), task.spec.kernel, skip_damaged=True)
    for device_record in first_of_each(records):
        traits = traits_of(device_record.device)
        for entry in device_record.record.entries:
            origin = _origin(device_record.device.name, entry.sizes, entry.dtype, entry.data)
            times: _Times = dict.fromkeys(entry.ties, entry.time_ms)
            if entry.default_time_ms is not None:
                times[device_record.record.default] = entry.default_time_ms
            yield origin, traits, times | dict(entry.measured) | {entry.config: entry.time_ms}


def _from_journals(task: TuningTask, own_journal: Path) -> Iterator[tuple[str, Traits, _Times]]:
    for path in sorted(RUNS.glob("*.jsonl")) if RUNS.is_dir() else ():
        if path.resolve() == own_journal.resolve():
            continue
        with suppress(AutotuneError):
            header, trials, *_ = read_journal(path)
            if header.get("kernel") == task.spec.kernel:
                traits = traits_of_name(str(header.get("device", "")))
                device, dtype = str(header.get("device", "?")), str(header.get("dtype", ""))
                origin = _origin(device, header_sizes(header) or {}, dtype, str(header.get("data", "")))
                yield origin, traits, {trial.config: trial.time_ms for trial in trials}


def origin_of(task: TuningTask) -> str:
    """The name of a task's results where other searches start from them."""
    problem = task.space.problem
    return _origin(task.device.name, problem.sizes, problem.dtype, problem.data)


def _origin(device: str, sizes: Mapping[str, int], dtype: str, data: str) -> str:
    named = [f"{name}={size}" for name, size in sorted(sizes.items())]
    return ", ".join(filter(None, (device, *named, dtype, data)))


def _timed(times: _Times) -> int:
    return sum(time_ms is not None for time_ms in times.values())
