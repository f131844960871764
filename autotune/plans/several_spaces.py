"""Searches several spaces in turns: the next is always the one that promises most per second."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from autotune.devices.listing import listing_for
from autotune.errors import AutotuneError, InputError
from autotune.plans.search_plan import PlannedSearch, PlanResult, Searches
from autotune.processes.deadline import Deadline
from autotune.tuning.options import Options
from autotune.tuning.result import SearchResult
from autotune.tuning.task import Target, TuningTask, find_space_file, read_task

if TYPE_CHECKING:  # needs the extra `cluster`
    from autotune.cluster.connection import Cluster

# Every further part of a space doubles its trials, because a part repeats all proposals.
FIRST_TRIALS = 50
MIN_GAIN = 0.001  # expected share of the best time, below which a space is done


def search_spaces(
    targets: Sequence[Target], options: Options, cluster: Cluster | None, searches: Searches
) -> PlanResult:
    """Search all targets, each of another kernel on the same devices, in parts.

    A part starts from the trials in the space's journal, and so does the same command when it is started
    again. A space is done when its budget is used up, when it promises no more, or after a part without a new
    trial, which the next would only repeat. Of the budget, trials count per space, and seconds for all
    together.

    Raises InputError if the options name a journal, a space file is missing, or two spaces are of the same
    kernel.
    """
    if options.journal is not None:
        raise InputError("several spaces have a journal each, in runs/; leave out --journal")
    for target in targets:  # a misspelt name is reported before hours of search
        find_space_file(target.space)
    devices = None if cluster is None else [(cluster.address, cluster.info)]
    listing = listing_for(targets[0].devices or targets[0].device) if cluster is None else None
    tasks: dict[int, TuningTask] = {}
    for number, target in enumerate(targets):
        try:
            tasks[number] = read_task(target, searches.observer.stage, devices, listing)
        except AutotuneError as error:
            searches.failures.append(f"{target.space.stem}: {error}")
    kernels = [task.spec.kernel for task in tasks.values()]
    if twice := next((name for name in kernels if kernels.count(name) > 1), None):
        raise InputError(f"two of the spaces are of the kernel {twice}; search them one after the other")
    deadline = Deadline.after(options.budget.seconds)
    while tasks and not deadline.is_over:
        promises = {
            number: promise(searches.results.get(number), task, options.budget.trials)
            for number, task in tasks.items()
        }
        number = max(promises, key=lambda number: promises[number])
        if promises[number] <= 0:
            break
        task, earlier = tasks[number], searches.results.get(number)
        part = _part(options, earlier, deadline.left_s())
        searches.run(PlannedSearch(number, task.spec.kernel, task, part, cluster))
        result = searches.results.get(number)  # the earlier one after a failure
        if result is None or (earlier is not None and len(result.trials) <= len(earlier.trials)):
            del tasks[number]
    late = (task.spec.kernel for number, task in tasks.items() if number not in searches.results)
    searches.failures += (f"{kernel}: no time was left; give a longer --time" for kernel in late)
    return searches.done(f"of {len(targets)} spaces failed")


def promise(result: SearchResult | None, task: TuningTask, max_trials: int | None) -> float:
    """The share of the best time that the next part is expected to save per second; infinite if unknown."""
    if result is None:
        return math.inf
    tried = len(result.trials)
    if tried >= min(len(task.space), math.inf if max_trials is None else max_trials):
        return 0.0
    gain = result.stopping_estimate.expected_improvement
    if gain is None:
        return math.inf
    return gain / max(result.search_seconds, 1e-3) if gain >= MIN_GAIN else 0.0


def _part(options: Options, earlier: SearchResult | None, left_s: float) -> Options:
    """The options of the next part of a space; its limits include what earlier parts used."""
    trials = FIRST_TRIALS if earlier is None else 2 * len(earlier.trials)
    most = options.budget.trials
    spent_s = 0.0 if earlier is None else earlier.search_seconds
    budget = replace(
        options.budget,
        trials=trials if most is None else min(trials, most),
        seconds=None if math.isinf(left_s) else left_s + spent_s,
    )
    return replace(options, budget=budget, fresh=options.fresh and earlier is None)
