"""The surrogate model of a search: the time, the failure probability and the cost of every candidate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from autotune.searchers.base import PriorResults
from autotune.searchers.surrogate.candidate_set import candidate_set
from autotune.searchers.surrogate.encoding import Axis, Encoding, Floats, Indices, Positions
from autotune.searchers.surrogate.gaussian_process import Kernel, default_hyper_prior, fit
from autotune.searchers.surrogate.history import History, training_sample
from autotune.searchers.surrogate.posterior import Posterior
from autotune.searchers.surrogate.time_model import TimeFit, TimeModel, plain_prior
from autotune.searchers.surrogate.transfer import TransferModel

MAX_FAILURE_PROBABILITY = 0.98
MANY_FAILURES = 0.1  # share of the trials, or of MIN_TRIALS, above which likely failures come last
MIN_TRIALS = 30
LIKELY_FAILURE = 0.15  # failure probability of what then comes last
RESCORED = 300  # highest scores, which are worked out again after each choice
MAX_DRAWN = 300  # candidates whose times are drawn jointly
GROWTH = 1.25  # fit a new model when the history has grown by this factor
MAX_TRAINING = 500  # trials that a model is fitted to: of more, the fastest half and a sample
MIN_TO_COMPARE = 10  # trials before which a model with sources is not compared with one without
MAX_SOURCE_ROWS = 1000  # fastest configurations of the sources that are always candidates
FAILURE_NOISE = 0.05
HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


class FailureModel:
    """A process for the outcomes of candidates, 1 for a failure and 0 for a success."""

    def __init__(
        self,
        axes: Sequence[Axis],
        positions: Positions,
        points: list[int],
        failed: NDArray[np.bool_],
        start: Floats | None,
        *,
        is_fixed: bool = False,
    ) -> None:
        """Fit to the outcomes of points.

        `start` has the hyperparameters that the optimiser starts from; None is for the mean of their prior.
        With `is_fixed` they are kept.
        """
        self._outcomes = [float(outcome) for outcome in failed]
        prior, rate = default_hyper_prior(len(axes), noise=FAILURE_NOISE), self._rate
        targets = (np.array(self._outcomes) - rate) / math.sqrt(rate * (1.0 - rate))
        no_basis = np.empty((len(positions), 0))
        kernel = Kernel(axes, prior.mean if start is None else start)
        data = prior, positions[points], targets, no_basis[points]
        self.kernel = kernel if is_fixed else fit(kernel, *data)[0]
        self._posterior = Posterior(self.kernel, positions, no_basis, points)

    def add(self, point: int, *, failed: bool) -> None:
        """Condition on the outcome of one more candidate."""
        self._posterior.add(point)
        self._outcomes.append(float(failed))

    def probability(self) -> Floats:
        """Estimated probability of failure of every candidate; may lie somewhat outside of 0 to 1."""
        return self._rate + self._posterior.means(np.array(self._outcomes) - self._rate)

    @property
    def _rate(self) -> float:
        return (sum(self._outcomes) + 0.5) / (len(self._outcomes) + 1.0)


class Model:
    """The candidates of a search, with a process for their log times and one for their failures."""

    def __init__(
        self,
        history: History,
        rows: Indices,
        times: TimeModel,
        failures: FailureModel | None,
        failed_elsewhere: Floats,
        pending: Sequence[int],
        max_log_score: float = math.inf,
    ) -> None:
        """Combine processes that were fitted to the history as it is now.

        Args:
            history: Of the search; it may grow.
            rows: Of the candidates, ascending. Negative ones stand for what was tried for other problems,
                which is no row of this space and is not proposed.
            times: Of the candidates' log times.
            failures: Of their failures; None if there was none.
            failed_elsewhere: The probability that each fails, as results of other devices say.
            pending: Rows that are being tried.
            max_log_score: Greater log times count as this one.
        """
        self._history, self._rows, self._times = history, rows, times
        self._failures, self._failed_elsewhere = failures, failed_elsewhere
        self._max_log_score = max_log_score
        self._known = len(history)  # trials that it is conditioned on
        self._tried = np.isin(rows, history.rows) | (rows < 0)
        for point in points_of(rows, pending):
            self._add_pending(point)

    def propose(self, count: int) -> list[int]:
        """Choose rows to try next, the most promising first; fewer if fewer candidates are left.

        The first one has the greatest expected improvement per second. Each further one is chosen as if those
        before it had come out as expected (kriging believer; Ginsbourger, Le Riche and Carraro, Kriging is
        well-suited to parallelize optimization, 2010). After many failures, likely ones come last: no
        probability below 1 would outweigh an expected time far better than all others.
        """
        history, best = self._history, self._times.best
        mean, log_cost = self._times.expectations()
        failure_probability = self._failure_probability()
        weight = np.log1p(-failure_probability) - log_cost
        many = history.failed.sum() > MANY_FAILURES * max(len(history), MIN_TRIALS)
        acceptable = failure_probability <= (LIKELY_FAILURE if many else 1.0)

        def score(points: Indices) -> Floats:
            deviation = self._times.deviation[points]
            return log_expected_improvement(best, mean[points], deviation) + weight[points]

        chosen: list[int] = []
        for are_next in (acceptable, ~acceptable):
            if len(chosen) < count:
                points = np.flatnonzero(are_next & ~self._tried)
                chosen += self._take_highest(points, count - len(chosen), score)
        return [int(self._rows[point]) for point in chosen]

    def _take_highest(self, points: Indices, count: int, score: Callable[[Indices], Floats]) -> list[int]:
        """Take at most `count` points, each of which has the highest score once those before it are pending.

        A pending point makes other times more certain, so no score grows. Only the highest are worked out
        again, unless they fall below others.
        """
        chosen: list[int] = []
        scores = score(points)
        for _ in range(min(count, len(points))):
            left_out = max(0, len(points) - RESCORED)
            high = np.argpartition(scores, left_out)[left_out:]
            bound = scores[high].min()  # of all others
            scores[high] = score(points[high])
            if scores[high].max() <= bound:
                scores = score(points)
            place = int(np.argmax(scores))
            chosen.append(int(points[place]))
            self._add_pending(chosen[-1])
            points, scores = np.delete(points, place), np.delete(scores, place)
        return chosen

    def update(self) -> None:
        """Condition on the history's new trials, all of which are of proposed rows."""
        history, new = self._history, slice(self._known, None)
        trials = zip(history.rows[new], history.log_score[new], history.log_cost[new], strict=True)
        for row, log_score, log_cost in trials:
            (point,) = points_of(self._rows, [row])
            self._times.tell(point, float(np.minimum(log_score, self._max_log_score)), log_cost)
            if self._failures is not None:
                self._failures.add(point, failed=math.isnan(log_score))
        self._known = len(history)

    def sample_best(self, draws: int, rng: np.random.Generator) -> Floats:
        """Draw the log of the best untried candidate's time over the best time so far.

        The likeliest to be better are drawn jointly, because candidates depend on each other.
        """
        untried = int((~self._tried).sum())
        if not untried:
            return np.zeros(draws)
        mean, _ = self._times.expectations()
        best = self._times.best
        score = (best - mean) / self._times.deviation
        score[self._tried] = -np.inf
        likeliest = np.argsort(-score, kind="stable")[: min(MAX_DRAWN, untried)]
        # by eigenvalues: rounding may leave some of them just below 0, and then there is no Cholesky factor
        values, vectors = np.linalg.eigh(self._times.covariance(likeliest))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        drawn = mean[likeliest] + rng.standard_normal((draws, len(likeliest))) @ root.T
        works = rng.random(drawn.shape) >= self._failure_probability()[likeliest]
        return np.asarray((np.where(works, drawn, np.inf).min(axis=1) - best) * self._times.scale)

    def _add_pending(self, point: int) -> None:
        self._tried[point] = True
        self._times.add_pending(point)

    def _failure_probability(self) -> Floats:
        if self._failures is None:
            return self._failed_elsewhere
        probability = self._failures.probability() + self._failed_elsewhere
        return np.clip(probability, 0.0, MAX_FAILURE_PROBABILITY)


class ModelFitter:
    """Fits the models of one search, each starting from the last one's hyperparameters."""

    def __init__(self, encoding: Encoding, priors: Iterable[PriorResults], rng: np.random.Generator) -> None:
        self._encoding, self._priors, self._rng = encoding, priors, rng
        self.transfer = TransferModel(encoding, tuple(priors), rng)
        # hyperparameters of the latest model
        self._with_sources: Floats | None = None  # of times, if results of other devices count
        self._alone: Floats | None = None  # of times, if they do not
        self._failure: Floats | None = None

    def fit(self, history: History, pending: Sequence[int] = ()) -> Model:
        """A model of trials, at least two of which have a time, and of the present priors.

        `pending` are rows that are being tried.
        """
        encoding, priors = self._encoding, tuple(self._priors)
        if sum(len(prior.results) for prior in priors) > GROWTH * self.transfer.result_count:
            self.transfer = TransferModel(encoding, priors, self._rng)
            self._with_sources = None  # of other priors
        fastest_first = np.argsort(history.log_score, kind="stable")  # failures last
        training = training_sample(fastest_first, MAX_TRAINING, self._rng)
        required = history.rows[training], self.transfer.fastest_rows(MAX_SOURCE_ROWS)
        rows = candidate_set(encoding, np.concatenate([*required, np.array(pending, np.intp)]), self._rng)
        positions = encoding.positions(rows)

        failed = history.failed[training]
        timed = training[~failed]
        points, log_score = points_of(rows, history.rows[timed]), history.log_score[timed]
        data = encoding.axes, positions, points, log_score
        chosen = alone = TimeFit(*data, plain_prior(len(encoding.axes), len(rows)), self._alone)
        self._alone = alone.kernel.hyperparameters
        failed_elsewhere = np.zeros(len(rows))
        if self.transfer.models:
            prior, failed_elsewhere = self.transfer.prior_of(rows)
            with_sources = TimeFit(*data, prior, self._with_sources)
            self._with_sources = with_sources.kernel.hyperparameters
            if len(history) < MIN_TO_COMPARE or with_sources.evidence >= alone.evidence:
                chosen = with_sources
        times = TimeModel(chosen, positions, points, log_score, history.log_cost[timed])

        failures = None
        if failed.any():
            points = points_of(rows, history.rows[training])
            failures = FailureModel(encoding.axes, positions, points, failed, self._failure)
            self._failure = failures.kernel.hyperparameters
        return Model(history, rows, times, failures, failed_elsewhere, pending)


def points_of(rows: Indices, wanted: Indices | Sequence[int]) -> list[int]:
    """The points of wanted rows: their indices among the rows of all candidates, which are ascending."""
    return [int(point) for point in np.searchsorted(rows, wanted)]


def log_expected_improvement(best: float, mean: Floats, deviation: Floats) -> Floats:
    """Log of the expected amount by which a normal value falls below `best`; finite far above it too.

    Source: Ament, Daulton, Eriksson, Balandat and Bakshy, Unexpected Improvements to Expected Improvement
    for Bayesian Optimization (NeurIPS 2023), section 4.1.
    """
    z = (best - mean) / deviation
    log_density = -0.5 * z**2 - HALF_LOG_2_PI
    above = z > -1.0
    high, low = z[above], z[~above]
    improvement = np.empty_like(z)
    improvement[above] = np.log(np.exp(log_density[above]) + high * scipy.special.ndtr(high))
    # 1 + z * Phi(z) / phi(z) cancels: 1 / z^2 where its terms can no longer be told apart
    tail = 1.0 + low * math.sqrt(math.pi / 2) * scipy.special.erfcx(-low / math.sqrt(2))
    log_tail = np.log(np.where(low < -1e3, low**-2.0, np.maximum(tail, 1e-300)))
    improvement[~above] = log_density[~above] + log_tail
    return np.log(deviation) + improvement
