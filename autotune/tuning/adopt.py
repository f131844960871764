"""Adopt: a short search that starts from the results of other devices and sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from autotune.core.records import ADOPTION, Entry
from autotune.errors import InputError
from autotune.serving.cache import read_roots
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.prior_results import gather_priors
from autotune.tuning.result import SearchResult
from autotune.tuning.task import TuningTask
from autotune.tuning.tuner import search


def full_search_result(task: TuningTask, cache: Path | None) -> Entry | None:
    """The cached result of a full search for this device, problem and element type, or None.

    Results of short searches and results whose configuration is no longer in the space are ignored.
    """
    for root in read_roots(cache):
        entry = task.cached_entry(root)
        if entry is not None and entry.config in task.space and not entry.provenance.is_probe:
            return entry
    return None


def adopt(task: TuningTask, options: Options, observer: Observer) -> SearchResult:
    """Search a few configurations that the results of other devices and sizes predict to be fast.

    The result replaces the cached one for this problem, so check `full_search_result` first.

    Raises:
        InputError: No other device or size has results; otherwise as `search` raises.
        SetupError: As `search` raises.
    """
    priors = gather_priors(task, options)
    if not priors:
        raise InputError(
            f"{task.spec.kernel}: no results for another device or size, so there is nothing to adopt; "
            "run `autotune search` for a first result"
        )
    return search(task, replace(options, engine=ADOPTION), observer, priors)
