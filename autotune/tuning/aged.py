"""Times results of another driver, compiler or source again, and searches anew where they lose."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.compilers.kernel_source import read_source
from autotune.core.records import DeviceInfo, Entry
from autotune.core.trials import Budget
from autotune.devices import Address
from autotune.errors import AutotuneError
from autotune.evaluation.compiler_pool import compiler_name
from autotune.searchers.base import evaluate
from autotune.serving.query import changes
from autotune.space import load_space
from autotune.tuning.finals import remeasure
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.recheck import CHANGE, CheckedEntry, CheckState, opened, provenance_now, refresh
from autotune.tuning.task import TuningTask, facts, locate
from autotune.tuning.tuner import search, sources_of

TIMING_S = 5.0  # for the two configurations of a result
MIN_SEARCH_S = 10.0  # a shorter search finds little


@dataclass(frozen=True)
class Retimed:
    """A result whose origin is of another time, and its times of now.

    `searched_ms` is the time of a new search's best; None without one, for the reason in `note`, if any.
    """

    entry: Entry
    changes: tuple[str, ...]
    tuned_ms: float | None = None  # None if it failed
    default_ms: float | None = None
    noise: float = 0.0
    searched_ms: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The tuned configuration's time of now relative to the stored one."""
        return self.tuned_ms / self.entry.time_ms if self.tuned_ms else None

    @property
    def loses(self) -> bool:
        """True if it fails, or is slower than it was, or than the default, by more than the noise."""
        if self.tuned_ms is None or self.ratio is None:
            return True
        beaten = self.default_ms is not None and self.tuned_ms > self.default_ms * (1 + self.noise)
        return beaten or self.ratio > 1 + self.noise


def present_facts(kernel: str, address: Address, device: DeviceInfo) -> dict[str, str]:
    """As `TuningTask.facts`, for a kernel by its name; empty if no space file of this name can be read."""
    try:
        spec = load_space(locate(Path(kernel)))
        source = read_source(spec.source, spec.include_dirs)
        compiler = compiler_name(address, device, spec.compiler)
    except AutotuneError:
        return {}
    return facts(device, compiler, source, spec)


def retime(
    task: TuningTask, options: Options, observer: Observer, entry: Entry, root: str, deadline_s: float
) -> Retimed | None:
    """Time a result's best and the default again, in seconds, and search anew if it loses.

    Returns None if nothing has changed.

    A result that holds is stored with its times of now; a search stores what it finds.

    Args:
        task: The problem of the result.
        options: How to run.
        observer: Receives the events.
        entry: The cached result.
        root: The cache's folder.
        deadline_s: On the clock of `time.perf_counter`; no search goes on after it.

    Raises:
        SetupError: The reference or the device cannot be used.
        WriteError: The journal cannot be written.
    """
    reasons = changes(entry.provenance, task.facts)
    if not reasons:
        return None
    found, fresh = _timed(task, options, observer, Retimed(entry, reasons))
    if fresh is not None and not found.loses:
        refresh(task, root, CheckedEntry(entry, CheckState.SAME, "", fresh=fresh))
        return found
    left_s = deadline_s - time.perf_counter()
    if left_s < MIN_SEARCH_S:
        return replace(found, note="no time is left for a search; give more with --time")
    own = replace(options, fresh=True, budget=Budget(seconds=left_s), cache=Path(root))
    result = search(task, own, observer, sources_of(task, own))
    return replace(found, searched_ms=result.final.median_ms)


def _timed(
    task: TuningTask, options: Options, observer: Observer, found: Retimed
) -> tuple[Retimed, Entry | None]:
    """Time the result's best and the default in turns; returns also the entry with these times."""
    entry = found.entry
    if entry.config not in task.space:
        return replace(found, note="the configuration is no longer in the space"), None
    configs = list(dict.fromkeys((entry.config, task.spec.default)))
    with opened(task, options, observer, len(configs)) as context:
        trials = {trial.config: trial for trial in evaluate(context.evaluator, configs)}
        if failure := trials[entry.config].failure:
            return replace(found, note=str(failure)), None
        passed = [trial for trial in trials.values() if not trial.failure]
        finals = remeasure(context, passed, time.perf_counter() + TIMING_S)
        if failure := finals.rejected.get(entry.config):
            return replace(found, note=str(failure)), None
        tuned = finals.measurements[trials[entry.config].key]
        default = finals.measurements.get(trials[task.spec.default].key)
        fresh = replace(
            entry,
            time_ms=tuned.median_ms,
            interval_ms=tuned.interval_ms,
            default_time_ms=default.median_ms if default else entry.default_time_ms,
            noise=tuned.noise,
            provenance=provenance_now(task, entry, finals.fresh),
        )
    noise = max(CHANGE, entry.noise or 0.0, tuned.noise or 0.0)
    default_ms = default.median_ms if default else None
    return replace(found, tuned_ms=tuned.median_ms, default_ms=default_ms, noise=noise), fresh
