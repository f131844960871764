"""How many launches the configurations of a space have, and of how many blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from autotune.core.expressions import parse
from autotune.core.launch_plan import device_values
from autotune.space.space import Space
from autotune.space.truth_tables import Failed, Tables, TooManyOperands

Numbers = NDArray[np.float64]


class LaunchExtents(NamedTuple):
    """What a launch plan makes of each row of a space, both of shape (rows,) and at least 1.

    Attributes:
        launches: How many there are.
        blocks: How many the largest of them has.
    """

    launches: Numbers
    blocks: Numbers


def launch_extents(space: Space) -> LaunchExtents:
    """Evaluate the launch plan for all rows.

    An expression counts as 1 where it cannot be evaluated here: where it reads what a Python function
    computes, or too many values.
    """
    problem = space.problem
    constants = {**device_values(space.device), **problem.sizes, "DTYPE": problem.dtype}
    tables = Tables(space.parameters, space.spec.derived, constants)
    launches, blocks = np.zeros(len(space)), np.ones(len(space))
    for step in space.spec.launch:
        count = _values(space, tables, step.when) * _values(space, tables, step.repeat or "1")
        grid = np.prod([_values(space, tables, extent) for extent in step.grid], axis=0)
        launches += count
        blocks = np.where(count > 0, np.maximum(blocks, grid), blocks)
    return LaunchExtents(np.maximum(launches, 1.0), blocks)


def _values(space: Space, tables: Tables, text: str) -> Numbers:
    """The value of an expression for each row."""
    try:
        table = tables.of(parse(text))
    except TooManyOperands:
        return np.ones(len(space))
    numbers = np.array([1.0 if value is Failed else float(value) for value in table.values])
    codes = table.codes[tuple(space.rows[:, column] for column in table.columns)]
    return np.broadcast_to(numbers[codes], len(space))  # the codes of a constant are one
