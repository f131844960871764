"""A script's objective: the time, or its own metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel_tuner import util

from autotune.core.expressions import number, parse
from autotune.core.records import Config
from autotune.core.text import hint
from autotune.errors import InputError
from autotune.kernel_tuner.observers import Observers
from autotune.kernel_tuner.parameters import Parameters


@dataclass(frozen=True)
class Goal:
    """The name of what is made small or large, and the metrics of the script, which it may be one of."""

    name: str
    is_higher_better: bool
    metrics: Mapping[str, Any]

    @property
    def is_time(self) -> bool:
        """True if it is the time, which needs no metric."""
        return self.name == "time"

    def with_metrics(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A configuration's known values, and its metrics, each of which may read earlier ones."""
        row = dict(row)
        for name, metric in self.metrics.items():
            row[name] = metric(row) if callable(metric) else number(parse(metric), row)
        return row

    def best(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The best of some configurations with their metrics; raises InputError for an unknown metric."""
        if self.name not in rows[0]:
            raise InputError(f"objective: {self.name!r} is no metric{hint(self.name, rows[0])}")
        return (max if self.is_higher_better else min)(rows, key=lambda row: float(row[self.name]))

    def objective(self, parameters: Parameters, observers: Observers) -> Callable[[Mapping[str, Any]], float]:
        """The metric as what a search makes small and keeps above 0, whatever its sign."""

        def objective(values: Mapping[str, Any]) -> float:
            config = Config({one.name: values[one.name] for one in parameters.listed})
            row = parameters.decode(config) | {"time": values["time_ms"]}
            row |= {"nvml_energy": values.get("energy_j")} | observers.results.get(config.key, {})
            value = float(self.with_metrics(row)[self.name]) * (-1 if self.is_higher_better else 1)
            return value + math.hypot(value, 1)

        objective.__qualname__ = self.name
        return objective


def read_goal(objective: Any, is_higher_better: Any, metrics: Mapping[str, Any] | None) -> Goal:
    """The goal of a script, by Kernel Tuner's rules where it says nothing; raises InputError for several."""
    name, is_higher_better = util.get_objective_defaults(objective, is_higher_better)
    if not isinstance(name, str):
        raise InputError("objective: several at once are not supported; name one, or use metrics")
    return Goal(name, bool(is_higher_better), metrics or {})
