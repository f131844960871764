"""The number of launches, and of blocks, of a space's configurations."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from autotune.core.expressions import names_behind, parse
from autotune.core.launch_plan import device_values
from autotune.space.space import Space
from autotune.space.truth_tables import Failed, Tables, TooManyOperands

MAX_COMBINATIONS = 1_000_000  # of the parameters that an expression reads
Numbers = NDArray[np.float64]


class LaunchExtents(NamedTuple):
    """Launches and blocks of each row of a space, both of shape (rows,) and at least 1."""

    launches: Numbers
    blocks: Numbers  # of the largest launch


def launch_extents(space: Space) -> LaunchExtents:
    """Evaluate the launch plan for all rows.

    A number counts as 1 where it cannot be evaluated here: where it reads what a Python function computes, or
    parameters with too many combinations. A condition holds there.
    """
    problem = space.problem
    constants = {**device_values(space.device), **problem.sizes, "DTYPE": problem.dtype}
    tables = Tables(space.parameters, space.spec.derived, constants)
    launches, blocks = np.zeros(len(space)), np.ones(len(space))
    for step in space.spec.launch:
        count = _values(space, tables, step.when, bool) * _values(space, tables, step.repeat or "1")
        grid = np.prod([_values(space, tables, extent) for extent in step.grid], axis=0)
        launches += count
        blocks = np.where(count > 0, np.maximum(blocks, grid), blocks)
    return LaunchExtents(np.maximum(launches, 1.0), blocks)


def _values(space: Space, tables: Tables, text: str, kind: type[bool] | type[float] = float) -> Numbers:
    expression = parse(text)
    behind = names_behind(expression.names, space.spec.derived)
    lengths = (len(parameter.values) for parameter in space.parameters if parameter.name in behind)
    if math.prod(lengths) > MAX_COMBINATIONS:
        return np.ones(len(space))
    try:
        table = tables.of(expression)
    except TooManyOperands:
        return np.ones(len(space))
    numbers = np.array([1.0 if value is Failed else float(kind(value)) for value in table.values])
    codes = table.codes[tuple(space.rows[:, column] for column in table.columns)]
    return np.broadcast_to(numbers[codes], len(space))  # the codes of a constant are one
