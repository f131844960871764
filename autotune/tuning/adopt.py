"""A result for a device or a size that has none, from a few runs: a search that others have made short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from autotune.core.records import ADOPTION, Entry
from autotune.errors import InputError
from autotune.serving.cache import read_entry, read_roots
from autotune.tuning.context import Observer, default_journal
from autotune.tuning.options import Options
from autotune.tuning.result import Result
from autotune.tuning.source_results import gather
from autotune.tuning.task import TuningTask
from autotune.tuning.tuner import search


def searched(task: TuningTask, cache: Path | None) -> Entry | None:
    """What a search, and no probe, has found for this device, problem and element type; None: nothing.

    A configuration that the space does not have, or has no more, is of no search of it.
    """
    problem = task.space.problem
    for root in read_roots(cache):
        entry = read_entry(root, task.device.slug, task.spec.kernel, problem.sizes, problem.dtype)
        if entry is not None and entry.config in task.space and not entry.provenance.is_probe:
            return entry
    return None


def adopt(task: TuningTask, options: Options, observer: Observer) -> Result:
    """Try what other devices and sizes promise most of, verify and time as every search, store the best.

    Raises InputError where nothing is known elsewhere, and as `search` does. Where `searched` finds something
    there is nothing to adopt, and what is stored would replace it.
    """
    priors = gather(task, options.cache, options.journal or default_journal(task))
    if not priors:
        raise InputError(
            f"{task.spec.kernel}: nothing is known of it on another device or for another size, so there is "
            "nothing to adopt: autotune search finds a first result"
        )
    return search(task, replace(options, engine=ADOPTION), observer, priors)
