"""What a script asks of a search: its objective (the time, or a metric), its strategy and its budget."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel_tuner import util

from autotune.core.expressions import number, parse
from autotune.core.records import Config
from autotune.core.text import hint
from autotune.core.trials import Budget, Objective
from autotune.errors import InputError
from autotune.kernel_tuner.observers import Observers
from autotune.kernel_tuner.parameters import Parameters
from autotune.searchers import strategy_names
from autotune.tuning.options import Options

ENGINE = "kernel_tuner"
DEFAULT_FEVALS = 100  # of a strategy; without one the whole space is tried
TIMEOUT_S = 300.0  # of a configuration until the first one has run: scripts have problems of any size
LAST_ROUND_SHARE = 0.2  # of the time of the search: Kernel Tuner has no such round
_MODULES = "kernel_tuner.strategies."  # a script may give the module in the place of its name


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
            config = Config({parameter.name: values[parameter.name] for parameter in parameters.listed})
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


def search_options(
    strategy: Any, strategy_options: Mapping[str, Any] | None, seed: int | None, valid: int
) -> Options:
    """The options of a search by a strategy, else of the whole space; raises InputError for an unknown one.

    The strategy's own options have no effect, which a warning says, but `fraction` of the `valid`
    configurations is a budget.
    """
    given = dict(strategy_options or {})
    fevals, seconds = given.pop("max_fevals", None), given.pop("time_limit", None)
    fraction = given.pop("fraction", None)
    if fraction is not None and fevals is None:
        fevals = max(1, math.ceil(float(fraction) * valid))
    if given:
        warnings.warn(f"strategy_options without effect: {', '.join(given)}", stacklevel=4)
    module = getattr(strategy, "__name__", "")
    if module.startswith(_MODULES):
        strategy = module.removeprefix(_MODULES)
    is_whole = strategy in (None, "brute_force")
    if not is_whole and strategy not in strategy_names(ENGINE):
        named = strategy if isinstance(strategy, str) else type(strategy).__name__
        raise InputError(f"strategy: {named!r} is unknown{hint(named, strategy_names(ENGINE))}")
    if fevals is None and (is_whole or seconds is None):
        fevals = valid if is_whole else DEFAULT_FEVALS
    return Options(
        engine="exhaustive" if is_whole else ENGINE,
        strategy=None if is_whole else strategy,
        budget=Budget(trials=fevals, seconds=seconds),
        seed=seed or 0,
        timeout_s=TIMEOUT_S,
        transfer=False,
        last_round_share=LAST_ROUND_SHARE,
        sanitizer=False,  # a script's only problem is its full one, which takes long on the CPU
        objective=Objective.TIME,
    )
