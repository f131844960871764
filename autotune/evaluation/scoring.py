"""Users' own metrics and objective, computed from measurements, and their requirements on results."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from autotune.core.expressions import Expression, number, unknown_names
from autotune.core.text import hint
from autotune.core.trials import Failure, Measurement, Objective, Status, Trial
from autotune.errors import ExpressionError, InputError
from autotune.space import ValidSpace
from autotune.space.functions import function_name
from autotune.space.spec import MEASURED

OwnScore = Callable[[Mapping[str, Any]], float]  # an expression is one as well
OwnObjective = str | OwnScore  # as a user writes it


class Scoring:
    """Values of trials, computed from their measurements, their parameters and the problem's sizes."""

    def __init__(self, space: ValidSpace, objective: Objective, own: OwnScore | None = None) -> None:
        """Check an objective of the user's, which is `own` if `objective` is `Objective.OWN`.

        Raises InputError for an expression that reads unknown names.
        """
        self.objective, self._space, self._own = objective, space, own
        names = {*space.values(space.spec.default), *MEASURED, *space.metrics}
        if isinstance(own, Expression) and (unknown := unknown_names(own, names)):
            names |= {kind.value for kind in Objective if kind is not Objective.OWN}
            raise InputError(f"objective: unknown name {unknown[0]!r}{hint(unknown[0], names)}")

    @property
    def name(self) -> str:
        """The objective in words: its name, its expression, or the name of its function."""
        if isinstance(self._own, Expression):
            return self._own.text
        return self.objective.value if self._own is None else function_name(self._own)

    @property
    def folder(self) -> str:
        """The objective's name in the cache: its own, or a hash of the user's expression."""
        if self._own is None:
            return self.objective.value
        return f"{self.objective.value}-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"

    @property
    def needs_energy(self) -> bool:
        """True if the energy of a run has to be measured."""
        objective = [self._own] if isinstance(self._own, Expression) else []
        expressions = (*objective, *self._space.metrics.values(), *self._space.require)
        read = {name for expression in expressions for name in expression.names}
        return "energy_j" in read or self.objective not in (Objective.TIME, Objective.OWN)

    def metrics(self, trial: Trial) -> dict[str, float]:
        """The metrics of a trial that can be computed from what was measured."""
        values = self._values(trial, trial.measurement)
        return {name: float(values[name]) for name in self._space.metrics if name in values}

    def scored(self, trial: Trial) -> Trial:
        """A trial with the value of the user's objective, or with the reason why it has none."""
        if trial.failure is not None or trial.measurement is None or not (self._own or self._space.require):
            return trial
        try:
            values = self._values(trial, trial.measurement)
            for condition in self._space.require:
                if not condition(values):
                    detail = f"require: {condition.text} does not hold: {_read(condition, values)}"
                    return replace(trial, failure=Failure(Status.MISSES_REQUIREMENT, detail))
            return replace(trial, measurement=self.valued(trial, trial.measurement))
        except ExpressionError as error:
            return replace(trial, failure=Failure(Status.MEASUREMENT_ERROR, f"objective: {error}"))

    def valued(self, trial: Trial, measurement: Measurement) -> Measurement:
        """Another measurement of a trial with the value of the user's objective; raises ExpressionError."""
        if self._own is None:
            return measurement
        values = self._values(trial, measurement)
        if isinstance(self._own, Expression):
            value = float(number(self._own, values))
        else:
            try:
                value = float(self._own(values))
            except Exception as error:  # noqa: BLE001 - whatever the user's function raises
                near = hint(str(error.args[0]), values) if isinstance(error, KeyError) and error.args else ""
                raise ExpressionError(f"{self.name}: {type(error).__name__}: {error}{near}") from None
        if not 0 < value < math.inf:
            raise ExpressionError(f"{self.name} gives {value:g}, expected more than 0")
        return replace(measurement, value=value)

    def _values(self, trial: Trial, measurement: Measurement | None) -> dict[str, Any]:
        """The values that expressions may read: all measurements, and the metrics that follow from them."""
        measured = measured_values(trial, measurement).items()
        available = {name: value for name, value in measured if value is not None}
        values = self._space.values(trial.config) | available
        for name, expression in self._space.metrics.items():
            with suppress(ExpressionError):  # it reads what was not measured
                values[name] = number(expression, values)
        return values


def _read(condition: Expression, values: Mapping[str, Any]) -> str:
    """The values that a condition reads."""
    return ", ".join(f"{name}={values[name]}" for name in sorted(condition.names) if name in values)


def measured_values(trial: Trial, measurement: Measurement | None) -> dict[str, float | None]:
    """The measurements of a trial, by the names that metrics and objectives read; None without any."""
    return {
        "time_ms": measurement.median_ms if measurement else None,
        "energy_j": measurement.energy_j if measurement else None,
        "registers": trial.registers,
        "spill_bytes": trial.spill_bytes,
        "shared_bytes": trial.shared_bytes,
        "compile_ms": trial.compile_ms,
    }
