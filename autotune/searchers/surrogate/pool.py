"""Several problems of a kernel on one device, whose configurations lie on axes that all of them share.

Beside the parameters' axes there is one for each size that differs and one for the element type. Two more are
for what the launch plan makes of a configuration at a size: how many launches, and of how many blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from autotune.core.trials import Trial, problem_distance
from autotune.searchers.surrogate.encoding import Axis, Encoding, Floats, Indices, Positions
from autotune.searchers.surrogate.history import History
from autotune.searchers.surrogate.hyperparameters import Hyperparameters
from autotune.space import Space, launch_extents

MAX_LAUNCHES = 7  # more are alike
OCTAVES = 20.0  # doublings of a size, or of the number of blocks, that count as much as a parameter's range
STEPS = 2  # of a doubling, to which both are rounded
MAX_STEPS = 40 * STEPS


class PooledProblem(Encoding):
    """The configurations of one of several problems, and those that were tried."""

    def __init__(self, space: Space, sizes: Sequence[str], dtypes: Sequence[str]) -> None:
        """Place the configurations on the axes of problems that differ in these sizes and element types."""
        super().__init__(space)
        extents, problem = launch_extents(space), space.problem
        launches = np.minimum(extents.launches, MAX_LAUNCHES).astype(np.intp)
        here = [_steps(np.array([problem.sizes[name]], float))[0] for name in sizes]
        here.append(dtypes.index(problem.dtype))
        self._others = np.column_stack(
            [launches, _steps(extents.blocks), np.broadcast_to(here, (len(space), len(here)))]
        )
        octaves = [_octaves()] * (1 + len(sizes))
        self.axes = (*self.axes, _categories(MAX_LAUNCHES + 1), *octaves, _categories(len(dtypes)))
        self.history = History()

    def positions(self, rows: Indices | slice) -> Positions:
        """Positions of some rows of the space on all axes."""
        return np.column_stack([super().positions(rows), self._others[rows]])

    def learn(self, trials: Iterable[Trial]) -> None:
        """Take these trials instead of those that are known."""
        found = {row: trial for trial in trials if (row := self.space.index(trial.config)) is not None}
        self.history = History()
        self.history.add(list(found), list(found.values()))

    def fastest(self, count: int) -> Indices:
        """Places of at most so many of its trials, the fastest first; of none that failed."""
        log_ms = self.history.log_ms
        return np.argsort(log_ms, kind="stable")[: min(count, int((~self.history.failed).sum()))]


class Pool:
    """Some problems, and the hyperparameters of the latest model of them."""

    def __init__(self, spaces: Sequence[Space]) -> None:
        problems = [space.problem for space in spaces]
        sizes = [name for name in problems[0].sizes if len({one.sizes[name] for one in problems}) > 1]
        dtypes = sorted({problem.dtype for problem in problems})
        self._problems = [PooledProblem(space, sizes, dtypes) for space in spaces]
        self.hyperparameters = Hyperparameters()
        self.fitted_to = 0  # trials

    def problem(self, space: Space) -> PooledProblem:
        """The one with this space."""
        return next(one for one in self._problems if one.space is space)

    def nearest(self, space: Space) -> list[PooledProblem]:
        """The other ones with a time, the nearest first."""
        known = [one for one in self._problems if one.space is not space and not one.history.failed.all()]
        return sorted(known, key=lambda one: problem_distance(one.space.problem, space.problem))


def _steps(numbers: Floats) -> Positions:
    """Where numbers of at least 1 are on the axis of `_octaves`."""
    return np.asarray(np.minimum(np.rint(np.log2(numbers) * STEPS), MAX_STEPS), dtype=np.intp)


def _octaves() -> Axis:
    places = np.arange(MAX_STEPS + 1) / (STEPS * OCTAVES)
    return Axis(-1, places, np.abs(places[:, None] - places), is_ordinal=True)


def _categories(count: int) -> Axis:
    return Axis(-1, np.zeros(count), 1.0 - np.eye(count), is_ordinal=False)
