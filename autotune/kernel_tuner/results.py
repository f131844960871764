"""The values that `tune_kernel` returns, as Kernel Tuner has them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kernel_tuner import util

from autotune.core.records import Config
from autotune.core.trials import Status, Trial
from autotune.kernel_tuner.goal import Goal
from autotune.kernel_tuner.request import Request
from autotune.tuning.result import SearchResult

_BY_STATUS = {
    Status.PRUNED: util.InvalidConfig,
    Status.COMPILE_ERROR: util.CompilationFailedConfig,
    Status.COMPILE_TIMEOUT: util.CompilationFailedConfig,
}


def result_row(trial: Trial, request: Request, goal: Goal) -> dict[str, Any]:
    """A configuration with its time and metrics, or `__error__`; times in ms."""
    row: dict[str, Any] = request.parameters.decode(trial.config)
    timings = {
        "compile_time": trial.compile_ms,
        "verification_time": 0.0,
        "benchmark_time": max(0.0, trial.cost_s * 1e3),
        "strategy_time": 0.0,
        "framework_time": 0.0,
    }
    if trial.status is Status.OK and trial.measurement is not None:
        row |= {"time": float(trial.measurement.median_ms), "times": list(trial.measurement.samples_ms)}
        row = goal.with_metrics(row | timings | request.observers.of(trial))
    else:
        row |= {"__error__": _BY_STATUS.get(trial.status, util.RuntimeFailedConfig)(trial.detail)} | timings
    return row | {"timestamp": datetime.now(UTC).isoformat(sep=" ")}


def environment(
    found: SearchResult, rows: Sequence[dict[str, Any]], goal: Goal, took_s: float
) -> dict[str, Any]:
    """The device, the best configuration, and how long everything took; raises InputError as `Goal.best`."""
    device = found.task.device
    env = {
        "device_name": device.name,
        "device_properties": device.runtime,
        "driver": device.driver,
        "compiler": found.task.compiler,
        "best_config": _best(found, rows, goal),
    }
    totals: dict[str, Any] = util.get_total_timings(rows, env, took_s * 1e3)
    return totals


def _best(found: SearchResult, rows: Sequence[dict[str, Any]], goal: Goal) -> dict[str, Any]:
    """The winner of the last round; that of another goal than the time is the best of the search."""
    configs: list[Config] = [trial.config for trial in found.trials]
    if goal.is_time and found.winner.config in configs:
        return rows[configs.index(found.winner.config)]
    return goal.best([row for row in rows if "__error__" not in row])
