"""Results that the cache has for a task, and `best_config` serves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from autotune.core.records import Config, Entry, Tier
from autotune.errors import InputError, NoConfig
from autotune.serving.best import Best
from autotune.serving.cache import read_roots, record_path
from autotune.serving.lookup import best_config
from autotune.tuning.task import TuningTask


def served_best(
    task: TuningTask, cache: Path | None, *, strict: bool = False, min_match: Tier = Tier.DEFAULT
) -> Best | None:
    """The result that `best_config` serves for the task's problem, if it is in the space; else None."""
    problem = task.space.problem
    try:
        best = best_config(
            task.spec.kernel,
            task.device,
            dtype=problem.dtype,
            strict=strict,
            min_match=min_match,
            on_miss=None,
            cache=cache,
            data=problem.data or None,
            **problem.sizes,
        )
    except (NoConfig, InputError):  # not tuned yet, or not since the space's sizes or types changed
        return None
    return best if best.config in task.space else None


def tuned_best(task: TuningTask, cache: Path | None) -> Config | None:
    """The cached best for exactly this device and problem, or None."""
    best = served_best(task, cache, strict=True, min_match=Tier.EXACT)
    return best.config if best else None


@dataclass(frozen=True)
class KnownResult:
    """A result that the cache has for a task."""

    task: TuningTask
    entry: Entry
    cache_file: Path


def full_search_result(task: TuningTask, cache: Path | None) -> KnownResult | None:
    """The cached result of a full search for this device, problem and element type, or None.

    Results of short searches and results whose configuration is no longer in the space are ignored.
    """
    for root in read_roots(cache):
        entry = task.cached_entry(root)
        if entry is not None and entry.config in task.space and not entry.provenance.is_probe:
            return KnownResult(task, entry, Path(record_path(root, task.device.slug, task.spec.kernel)))
    return None
