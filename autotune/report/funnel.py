"""Number of combinations left after each constraint of a space, in the order of the file."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.space.enumeration import RowLimits, Rows, Rule, count_rows
from autotune.space.rules import Rules
from autotune.space.space import Space

_LIMITS = RowLimits(rows=1_000_000)  # larger intermediate results are estimated
_SAMPLE = 200_000  # combinations


@dataclass(frozen=True)
class Left:
    """Combinations that satisfy a constraint and all before it; None where none of a sample does."""

    count: int | None
    is_exact: bool


def funnel(space: Space) -> tuple[Left, ...]:
    """Count what is left after each constraint; where that takes too long, estimate it from a sample."""
    stages = Rules(space.spec, space.device, space.problem).stages()
    parameters = space.parameters
    exact = [
        count_rows(parameters, [rule for rules in stages[: number + 2] for rule in rules], _LIMITS)
        for number in range(len(stages) - 1)
    ]
    if None not in exact:
        return tuple(Left(count, True) for count in exact)
    rng = np.random.default_rng(0)
    columns = [rng.integers(len(parameter.values), size=_SAMPLE) for parameter in parameters]
    rows: Rows = np.stack(columns, axis=1).astype(space.rows.dtype)
    total = math.prod(len(parameter.values) for parameter in parameters)
    found = []
    for rules, count in zip(stages, [None, *exact], strict=True):
        for rule in rules:
            rows = rows[_holds(rule, rows)]
        estimate = round(total * len(rows) / _SAMPLE) or None
        found.append(Left(estimate if count is None else count, count is not None))
    return tuple(found[1:])


def _holds(rule: Rule, rows: Rows) -> NDArray[np.bool_]:
    """A mask of the rows that satisfy a rule, from its table if it has one."""
    if rule.columns and rule.is_tabled(_LIMITS) and rule.table is not None:
        held: NDArray[np.bool_] = rule.table[tuple(rows[:, column] for column in rule.columns)]
        return held
    return rule.keep(rows)
