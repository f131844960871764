"""Several problems of a kernel on one device: their configurations lie on shared axes.

Besides the axes of the parameters, there are two for what the launch plan makes of a configuration: how many
launches, and of how many blocks. Then there is one for each size that differs, and one for the element type
if it does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from autotune.core.expressions import names_behind, parse
from autotune.core.launch_plan import device_values
from autotune.core.trials import Trial, problem_distance
from autotune.searchers.surrogate.encoding import Axis, Encoding, Floats, Indices, Positions
from autotune.searchers.surrogate.history import History
from autotune.space import ValidSpace
from autotune.space.truth_tables import Failed, Tables, TooManyOperands

MAX_LAUNCHES = 7  # more are alike
OCTAVES = 20.0  # doublings of a size, or of the number of blocks, that count as much as a parameter's range
STEPS = 2  # of a doubling, to which numbers of blocks are rounded
MAX_STEPS = 40 * STEPS
MAX_COMBINATIONS = 1_000_000  # of the parameters that an expression reads


class PooledEncoding(Encoding):
    """The positions of one problem's configurations on the axes that several problems share."""

    def __init__(self, space: ValidSpace, sizes: dict[str, list[int]], dtypes: list[str]) -> None:
        """Add axes for the sizes and element types that occur."""
        super().__init__(space)
        problem, extents = space.problem, launch_extents(space)
        steps = np.rint(np.log2(extents.blocks) * STEPS)
        self._launches = np.minimum(extents.launches, MAX_LAUNCHES).astype(np.uint8)
        self._blocks = np.minimum(steps, MAX_STEPS).astype(np.uint8)
        self._problem = [values.index(problem.sizes[name]) for name, values in sizes.items()]
        axes = [_categories(MAX_LAUNCHES + 1), _octaves(np.arange(MAX_STEPS + 1) / STEPS)]
        axes += [_octaves(np.log2(values)) for values in sizes.values()]
        if len(dtypes) > 1:
            axes.append(_categories(len(dtypes)))
            self._problem.append(dtypes.index(problem.dtype))
        self.axes = (*self.axes, *axes)

    def positions(self, rows: Indices | slice) -> Positions:
        """Positions of some rows of the space on all axes."""
        of_parameters = super().positions(rows)
        same = np.broadcast_to(np.array(self._problem, np.intp), (len(of_parameters), len(self._problem)))
        return np.column_stack([of_parameters, self._launches[rows], self._blocks[rows], same])


@dataclass(frozen=True, eq=False)
class PooledProblem:
    """One of several problems, with its known trials."""

    encoding: PooledEncoding
    history: History

    def fastest(self, count: int) -> Indices:
        """Indices of at most so many trials in the history: the fastest first, none that failed."""
        timed = int((~self.history.failed).sum())
        return np.argsort(self.history.log_score, kind="stable")[: min(count, timed)]


class PooledTrials:
    """The trials of several problems, and the hyperparameters of the latest model of them."""

    def __init__(self, spaces: Sequence[ValidSpace]) -> None:
        problems = [space.problem for space in spaces]
        sizes = {name: sorted({problem.sizes[name] for problem in problems}) for name in problems[0].sizes}
        self._sizes = {name: values for name, values in sizes.items() if len(values) > 1}
        self._dtypes = sorted({problem.dtype for problem in problems})
        self._trials: dict[ValidSpace, tuple[Trial, ...]] = {}
        self._encodings: dict[ValidSpace, PooledEncoding] = {}
        self.time_hyperparameters: Floats | None = None
        self.failure_hyperparameters: Floats | None = None
        self.fitted_to = 0  # trials

    def learn(self, space: ValidSpace, trials: Iterable[Trial]) -> None:
        """Take over the trials of a problem, in place of the known ones."""
        self._trials[space] = tuple(trials)

    def count_others(self, space: ValidSpace) -> int:
        """The number of trials of the other problems."""
        return sum(len(trials) for other, trials in self._trials.items() if other is not space)

    def problem(self, space: ValidSpace) -> PooledProblem:
        """The problem of a space."""
        if space not in self._encodings:
            self._encodings[space] = PooledEncoding(space, self._sizes, self._dtypes)
        history = History(has_costs=False)
        for trial in self._trials.get(space, ()):
            row = space.index(trial.config)
            if row is not None:
                history.add([row], [trial])
        return PooledProblem(self._encodings[space], history)

    def nearest(self, space: ValidSpace, count: int) -> list[PooledProblem]:
        """At most so many of the other problems that have a trial with a time, the nearest first."""
        known = [
            known_space
            for known_space, trials in self._trials.items()
            if known_space is not space and any(trial.score is not None for trial in trials)
        ]
        known.sort(key=lambda known_space: problem_distance(known_space.problem, space.problem))
        return [self.problem(other) for other in known[:count]]


def _octaves(log2: Floats) -> Axis:
    coordinates = log2 / OCTAVES
    return Axis(-1, coordinates, np.abs(coordinates[:, None] - coordinates), is_ordinal=True)


def _categories(count: int) -> Axis:
    return Axis(-1, np.zeros(count), 1.0 - np.eye(count), is_ordinal=False)


class LaunchExtents(NamedTuple):
    """Launches and blocks of each row of a space, both of shape (rows,) and at least 1."""

    launches: Floats
    blocks: Floats  # of the largest launch


def launch_extents(space: ValidSpace) -> LaunchExtents:
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


def _values(space: ValidSpace, tables: Tables, text: str, kind: type[bool] | type[float] = float) -> Floats:
    expression = parse(text)
    behind = names_behind(expression.names, space.spec.derived)
    lengths = (len(parameter.values) for parameter in space.parameters if parameter.name in behind)
    if math.prod(lengths) > MAX_COMBINATIONS:
        return np.ones(len(space))
    try:
        table = tables.table_of(expression)
    except TooManyOperands:
        return np.ones(len(space))
    numbers = np.array([1.0 if value is Failed else float(kind(value)) for value in table.values])
    codes = table.codes[tuple(space.rows[:, column] for column in table.columns)]
    return np.broadcast_to(numbers[codes], len(space))  # the codes of a constant are one
