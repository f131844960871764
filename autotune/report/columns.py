"""The trials of a search as a page holds them: a compact list for each column, in the order of the trials.

A cell of a column with few different texts is the number of its text in a list of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from autotune.core import launch_plan as plan
from autotune.core.c_types import C_TYPES
from autotune.core.records import Parameter, Value
from autotune.core.trials import Status
from autotune.report.shortened import MAX_NAME, cut, short
from autotune.report.view import SearchView


@dataclass(frozen=True)
class Columns:
    """The columns of a search, and the lists that some of their cells are numbers of."""

    view: SearchView

    @cached_property
    def statuses(self) -> list[Status]:
        """The statuses that trials have, in the order of `Status`."""
        used = {trial.status for trial in self.view.trials}
        return [status for status in Status if status in used]

    @cached_property
    def details(self) -> list[str]:
        """Every detail once."""
        return list(dict.fromkeys(self.view.details))

    @cached_property
    def limits(self) -> list[str]:
        """What admits no more blocks on a multiprocessor, for any trial."""
        return sorted({found.limit for found in self.view.occupancies if found})

    def lists(self) -> dict[str, list[Any]]:
        """A list for each column; a measure that is unknown or 0 everywhere is left out."""
        view, trials = self.view, self.view.trials
        statuses = {status: place for place, status in enumerate(self.statuses)}
        details = {detail: place for place, detail in enumerate(self.details)}
        limits = {limit: place for place, limit in enumerate(self.limits)}
        measures: dict[str, list[Any]] = {
            "time_ms": [short(time_ms) for time_ms in view.times_ms],
            "compile_ms": [short(trial.compile_ms) for trial in trials],
            "cost_s": [short(trial.cost_s) for trial in trials],
            "registers": [trial.registers for trial in trials],
            "spill_bytes": [trial.spill_bytes for trial in trials],
            "shared_bytes": [trial.shared_bytes for trial in trials],
            "energy_j": [
                short(trial.measurement.energy_j) if trial.measurement else None for trial in trials
            ],
            "occupancy": [short(found.share) if found else None for found in view.occupancies],
            **{name: [short(amount) for amount in amounts] for name, amounts in view.work.items()},
        }
        found = {name: column for name, column in measures.items() if any(column)}
        if limits:
            found["limit"] = [limits[one.limit] if one else None for one in view.occupancies]
        return found | {
            "configs": [self._values(parameter) for parameter in view.parameters],
            "status": [statuses[trial.status] for trial in trials],
            "detail": [details[detail] for detail in view.details],
            "final": [int(trial.key in view.search.finals) for trial in trials],
        }

    def _values(self, parameter: Parameter) -> list[int]:
        """Each trial's value as its number in the parameter's list; -1 where the trial has none."""
        places = {(type(value), value): place for place, value in enumerate(parameter.values)}
        found = []
        for trial in self.view.trials:
            value = trial.config.get(parameter.name)
            found.append(-1 if value is None else places[type(value), value])
        return found


def parameters_json(parameters: Iterable[Parameter]) -> list[dict[str, Any]]:
    """Parameters with their values, and what each value's macro is defined as."""
    return [
        {
            "name": cut(parameter.name),
            "values": [cut(value) if isinstance(value, str) else value for value in parameter.values],
            "macros": [_macro_value(parameter.name, value) for value in parameter.values],
        }
        for parameter in parameters
    ]


def constants(view: SearchView) -> list[str]:
    """The macros that every configuration shares, as compiler options."""
    dtype = view.search.dtype
    best = view.trials[view.best or 0].config
    if dtype not in C_TYPES or set(best) != {parameter.name for parameter in view.parameters}:
        return []
    defines = plan.macros(view.parameters, best, dtype)
    return [
        f"-D{name}={value}" for name, value in defines.items() if name not in best and len(name) < MAX_NAME
    ]


def _macro_value(parameter: str, value: Value) -> str:
    if isinstance(value, str):
        return cut(plan.macro_name(parameter, value))
    return str(int(value) if isinstance(value, bool) else value)
