"""Search one of several problems with a model of all problems' trials.

Source: Krause and Ong, Contextual Gaussian Process Bandit Optimization (NIPS 2011): one process over the
configurations and what is known of each problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

import numpy as np

from autotune.core.records import Config
from autotune.searchers.base import TrialStream
from autotune.searchers.surrogate.blas_threads import one_blas_thread
from autotune.searchers.surrogate.candidate_set import candidate_set
from autotune.searchers.surrogate.history import History, training_sample
from autotune.searchers.surrogate.model import FailureModel, Model, points_of
from autotune.searchers.surrogate.pooled_trials import PooledProblem, PooledTrials
from autotune.searchers.surrogate.run import Run
from autotune.searchers.surrogate.time_model import TimeFit, TimeModel, plain_prior
from autotune.space import ValidSpace

# Configurations are under way at once: one for so many trials of other problems, which tell so much that a
# few more hardly change the model. The most are three parts of three (`PARTS` of run.py).
TRIALS_PER_PROPOSAL, MAX_PROPOSALS = 6, 9
OPENING_PROBLEMS, OPENING_EACH = 2, 2  # nearest problems, and the best of each, which are tried first
NEAREST = 5  # problems that a model learns from
CENTRES_EACH = 5  # of the best of each of these, and of the own, around which the candidates lie
TRAINING_EACH = 40  # of the trials of each
MAX_OWN = 200  # of the own trials
FAR_SLOWER = 1.0  # logarithm of the time relative to the best: beyond it all configurations are alike
MAX_CANDIDATES = 2_000  # fewer than in a search alone: trials of other problems tell where the best ones are
REFIT_GROWTH = 1.3  # fit the hyperparameters again when there are so many times as many trials


class PooledSearch:
    """Tries the greatest expected improvement by a Gaussian process over configurations and problems."""

    def __init__(
        self, pool: PooledTrials, opening: Sequence[Config] = (), *, stop_when_unlikely: bool = False
    ) -> None:
        """Learn from a pool to which the space belongs; first try the configurations of the opening.

        With `stop_when_unlikely`, return when two models in a row find an improvement unlikely.
        """
        self._pool, self._opening = pool, opening
        self._stop_when_unlikely = stop_when_unlikely

    def search(self, space: ValidSpace, stream: TrialStream, *, seed: int) -> None:
        """Propose every configuration, the most promising first; NoMoreTrials passes through."""
        with one_blas_thread():
            rng = np.random.default_rng(seed)
            fitter = _PooledModelFitter(self._pool, space, rng)
            run = Run(
                fitter.encoding,
                stream,
                rng,
                has_costs=False,  # a binary from another problem is cheap to try, but not better
                min_pending=max(1, self._pool.count_others(space) // TRIALS_PER_PROPOSAL),
                max_pending=MAX_PROPOSALS,
                stop_when_unlikely=self._stop_when_unlikely,
            )
            opening = list(dict.fromkeys([*_rows(space, self._opening), *fitter.opening])) or run.design(1)
            run.search(opening, fitter.fit)


class _PooledModelFitter:
    def __init__(self, pool: PooledTrials, space: ValidSpace, rng: np.random.Generator) -> None:
        self._pool, self._rng = pool, rng
        self.encoding = pool.problem(space).encoding
        nearest = pool.nearest(space, NEAREST)
        self.opening = _fastest_rows(space, nearest[:OPENING_PROBLEMS], OPENING_EACH)
        self._centres = _fastest_rows(space, nearest, CENTRES_EACH)
        self._known = _fastest_rows(space, nearest, TRAINING_EACH)
        positions, log_score = [self.encoding.positions(slice(0))], [np.zeros(0)]
        for problem in nearest:
            history, timed = problem.history, problem.fastest(TRAINING_EACH)
            failed = np.flatnonzero(history.failed)
            share = len(timed) / (len(history) - len(failed))
            chosen = np.append(timed, failed[: round(share * len(failed))])
            positions.append(problem.encoding.positions(history.rows[chosen]))
            log_score.append(history.log_score[chosen] - history.log_score[timed[0]])
        self._positions, self._log_score = np.concatenate(positions), np.concatenate(log_score)

    def fit(self, history: History, pending: Sequence[int]) -> Model:
        """A model of the trials of all problems, with times relative to each problem's best."""
        fastest_first = np.argsort(history.log_score, kind="stable")  # failures last
        training = training_sample(fastest_first, MAX_OWN, self._rng)
        log_best = history.log_score[training[0]]
        max_log_score = log_best + FAR_SLOWER
        log_score = np.concatenate([log_best + self._log_score, history.log_score[training]])
        failed = np.isnan(log_score)

        others, own = np.arange(-len(self._log_score), 0), history.rows[training]
        required = [*own[:CENTRES_EACH], *self._centres, *self._known, *history.rows, *pending]
        candidates = candidate_set(self.encoding, np.array(required, np.intp), self._rng, MAX_CANDIDATES)
        rows = np.concatenate([others, candidates])
        positions = np.concatenate([self._positions, self.encoding.positions(candidates)])
        points = points_of(rows, np.concatenate([others, own]))

        trials = len(history) + self._pool.count_others(self.encoding.space)
        pool, is_fixed = self._pool, trials <= REFIT_GROWTH * self._pool.fitted_to
        axes, timed = self.encoding.axes, np.array(points)[~failed].tolist()
        data = positions, timed, np.minimum(log_score[~failed], max_log_score)
        prior = plain_prior(len(axes), len(rows))
        fitted = TimeFit(axes, *data, prior, pool.time_hyperparameters, is_fixed=is_fixed)
        times = TimeModel(fitted, *data, np.full(len(timed), np.nan))
        failures = None
        if failed.any():
            start = pool.failure_hyperparameters
            is_known = is_fixed and start is not None
            failures = FailureModel(axes, positions, points, failed, start, is_fixed=is_known)
            pool.failure_hyperparameters = failures.kernel.hyperparameters
        pool.time_hyperparameters = fitted.kernel.hyperparameters
        pool.fitted_to = pool.fitted_to if is_fixed else trials
        return Model(history, rows, times, failures, np.zeros(len(rows)), pending, max_log_score)


def _fastest_rows(space: ValidSpace, problems: Iterable[PooledProblem], each: int) -> list[int]:
    """Rows of a space: the best of each problem, then the second best of each, and so on."""
    ranked = [
        [problem.encoding.space.config(int(row)) for row in problem.history.rows[problem.fastest(each)]]
        for problem in problems
    ]
    return _rows(space, filter(None, chain.from_iterable(zip_longest(*ranked))))


def _rows(space: ValidSpace, configs: Iterable[Config]) -> list[int]:
    """The rows of the configurations that a space has, each once."""
    rows = (space.index(config) for config in dict.fromkeys(configs))
    return [row for row in rows if row is not None]
