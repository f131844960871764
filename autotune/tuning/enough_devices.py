"""The case in which one device searches as much as several: by what these cost, and by the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from autotune.core.trials import Budget
from autotune.devices.listing import ALL
from autotune.tuning.task import TuningTask

MORE_S = 2.0  # that several devices take longer than one to start and, after the last trial, to end
TRIAL_S = 0.02  # the shipped kernels take 2 to 30 ms on an H200


def alone_if_enough(
    task: TuningTask, devices: str | None, budget: Budget, warn: Callable[[str], None]
) -> TuningTask:
    """The task with its first device only, and a warning, if `--devices all` gains nothing in the budget."""
    if devices != ALL:
        return task
    most = len(task.space) if budget.trials is None else min(budget.trials, len(task.space))
    reason = why_one(1 + len(task.others), replace(budget, trials=most))
    if reason:
        warn(f"--devices {ALL}: searching with {task.address} only: {reason}")
    return replace(task, others=()) if reason else task


def why_one(count: int, budget: Budget) -> str:
    """The reason why one of so many devices searches as much as all in this budget; empty if more pay."""
    if count < 2:
        return "there is one"
    least_s = MORE_S * count / (count - 1)  # from which on all have done more than one
    start = f"{count} devices take {MORE_S:g} s longer to start and to end"
    if budget.seconds is not None and budget.seconds <= least_s:
        return f"{start}, which {budget.seconds:g} s do not win back"
    if budget.trials is not None and budget.trials * TRIAL_S <= least_s:
        return f"{start}, which {budget.trials} trials do not win back"
    return ""
