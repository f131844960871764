"""Search one of several problems with a model of the trials of all of them.

Source: Krause and Ong, Contextual Gaussian Process Bandit Optimization (NIPS 2011): one process over the
configurations and what is known of each problem.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotune.core.records import Config
from autotune.searchers.base import Evaluate
from autotune.searchers.surrogate.blas_threads import one_blas_thread
from autotune.searchers.surrogate.candidate_set import candidate_set
from autotune.searchers.surrogate.encoding import Indices
from autotune.searchers.surrogate.failure_model import FailureModel
from autotune.searchers.surrogate.gaussian_process import MAX_ITERATIONS
from autotune.searchers.surrogate.history import History
from autotune.searchers.surrogate.hyperparameters import Hyperparameters
from autotune.searchers.surrogate.model import Model, points_of
from autotune.searchers.surrogate.pool import Pool
from autotune.searchers.surrogate.run import Run
from autotune.searchers.surrogate.time_model import TimeFit, TimeModel, plain_prior
from autotune.space import Space

BATCH = 16
TRIALS_PER_PROPOSAL = 6  # of other problems: where they tell much, one more trial hardly changes the model
FIRST_OF, FIRST_EACH = 2, 2  # nearest problems, and the best of each, which are tried first
CENTRES_OF, CENTRES_EACH = 5, 5  # the same, for what the candidates lie around; and the best so far
TRAINING_OF, TRAINING_EACH = 5, 40  # the same, for what a model learns from
MAX_OWN = 200  # trials of its own that a model learns from
FAR_SLOWER = 1.0  # logarithm of the time relative to the best, beyond which all are alike
GROWTH = 1.15  # fit hyperparameters when the trials have grown by this factor


class PooledSearch:
    """Tries the greatest expected improvement by a Gaussian process over configurations and problems."""

    def __init__(self, pool: Pool, first: Sequence[Config] = (), *, stop_when_unlikely: bool = False) -> None:
        """Learn from a pool to which the space belongs; begin with some configurations, if there are any."""
        self._pool, self._first = pool, first
        self._stop_when_unlikely = stop_when_unlikely

    def search(self, space: Space, evaluate: Evaluate, *, seed: int) -> None:
        """Propose every configuration once, the most promising first; BudgetSpent passes through.

        With `stop_when_unlikely`, return when two models in a row find an improvement unlikely.
        """
        with one_blas_thread():
            rng = np.random.default_rng(seed)
            models = _Models(self._pool, space, rng)
            run = Run(models.problem, evaluate, rng)
            rows = [row for config in self._first if (row := space.index(config)) is not None]
            known = models.fastest(FIRST_OF, FIRST_EACH)
            first = list(dict.fromkeys([*rows, *known.tolist()])) or run.design(min(BATCH, len(space)))
            least = max(1, min(BATCH, models.known_trials // TRIALS_PER_PROPOSAL))
            run.search(first, models.fit, least=least, stop_when_unlikely=self._stop_when_unlikely)


class _Models:
    """The models of one search."""

    def __init__(self, pool: Pool, space: Space, rng: np.random.Generator) -> None:
        self._pool, self._rng = pool, rng
        self.problem = pool.problem(space)
        self._nearest = pool.nearest(space)
        self.known_trials = sum(len(one.history) for one in self._nearest)
        self._known = self.fastest(TRAINING_OF, TRAINING_EACH)
        self._centres = self.fastest(CENTRES_OF, CENTRES_EACH)
        positions, log_ms = [self.problem.positions(slice(0))], [np.zeros(0)]
        for one in self._nearest[:TRAINING_OF]:
            history, timed = one.history, one.fastest(TRAINING_EACH)
            chosen = np.append(timed, np.flatnonzero(history.failed)[:TRAINING_EACH])
            positions.append(one.positions(history.rows[chosen]))
            log_ms.append(history.log_ms[chosen] - history.log_ms[timed[0]])
        self._positions, self._log_ms = np.concatenate(positions), np.concatenate(log_ms)

    def fastest(self, of: int, each: int) -> Indices:
        """Rows of the space: the fastest of the nearest other problems."""
        found = {
            one.space.config(int(row)): None
            for one in self._nearest[:of]
            for row in one.history.rows[one.fastest(each)]
        }
        rows = (self.problem.space.index(config) for config in found)
        return np.array([row for row in rows if row is not None], dtype=np.intp)

    def fit(self, history: History, pending: Sequence[int]) -> Model:
        """A model of the trials so far and of those of other problems, each relative to the best of its own.

        The latter come before the rows of the space, as candidates that were tried.
        """
        training = np.argsort(history.log_ms, kind="stable")[:MAX_OWN]  # failures last
        best = history.log_ms[training[0]]
        limit = best + FAR_SLOWER
        log_ms = np.concatenate([best + self._log_ms, history.log_ms[training]])
        failed = np.isnan(log_ms)

        elsewhere, tried = np.arange(-len(self._log_ms), 0), history.rows[training]
        required = [
            self._centres,
            tried[:CENTRES_EACH],
            self._known,
            history.rows,
            np.array(pending, np.intp),
        ]
        own = candidate_set(self.problem, np.concatenate(required), self._rng)
        rows = np.concatenate([elsewhere, own])
        positions = np.concatenate([self._positions, self.problem.positions(own)])
        points = np.array(points_of(rows, np.concatenate([elsewhere, tried])))

        pool, trials = self._pool, len(history) + self.known_trials
        iterations = MAX_ITERATIONS if trials > GROWTH * pool.fitted_to else 0
        if iterations:
            pool.fitted_to = trials
        last, axes = pool.hyperparameters, self.problem.axes
        data = positions, points[~failed].tolist(), np.minimum(log_ms[~failed], limit)
        fitted = TimeFit(axes, *data, plain_prior(len(axes), len(rows)), last.time, iterations)
        # what a trial costs depends on what was compiled for other problems: it shall not lead back to that
        times = TimeModel(fitted, *data, np.full((~failed).sum(), np.nan))
        failure, failures = last.failure, None
        if failed.any():
            failures = FailureModel(axes, positions, points.tolist(), failed, last.failure, iterations)
            failure = failures.kernel.values
        pool.hyperparameters = Hyperparameters(time=fitted.kernel.values, failure=failure)
        model = Model(history, rows, times, failures, np.zeros(len(rows)), limit)
        model.begin(pending)
        return model
