"""The surrogate model of a search: the time, the failure probability and the cost of every candidate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.searchers.surrogate.candidate_set import candidate_set
from autotune.searchers.surrogate.encoding import Encoding, Floats, Indices
from autotune.searchers.surrogate.expected_improvement import log_expected_improvement
from autotune.searchers.surrogate.failure_model import FailureModel
from autotune.searchers.surrogate.history import History, training_sample
from autotune.searchers.surrogate.time_model import TimeFit, TimeModel, plain_prior
from autotune.searchers.surrogate.transfer import TransferModel

MAX_TRAINING = 500  # trials that a model is fitted to: of more, the fastest half and a sample
MAX_FAILURE_PROBABILITY = 0.98
MANY_FAILURES = 0.1  # share of the trials, or of MIN_TRIALS, above which likely failures come last
MIN_TRIALS = 30
LIKELY_FAILURE = 0.15  # failure probability of what then comes last
MAX_DRAWN = 300  # candidates whose times are drawn jointly
MAX_SOURCE_ROWS = 1000  # fastest configurations of the sources that are always candidates


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """Hyperparameters of the latest fits, from which the next ones start."""

    time: Floats | None = None
    time_without_sources: Floats | None = None
    failure: Floats | None = None


class Model:
    """The candidates of a search, with a process for their log times and one for their failures."""

    def __init__(
        self,
        encoding: Encoding,
        transfer: TransferModel,
        history: History,
        last: Hyperparameters,
        rng: np.random.Generator,
        pending: Sequence[int] = (),
    ) -> None:
        """Fit both processes to a history in which at least two trials have a time.

        `pending` are rows that were proposed and have no trial yet.
        """
        self._history = history
        self._learnt = len(history)  # trials
        fastest_first = np.argsort(history.log_ms, kind="stable")  # failures last
        training = training_sample(fastest_first, MAX_TRAINING, rng)
        under_way = np.array(pending, np.intp)
        required = np.concatenate([history.rows[training], transfer.fastest_rows(MAX_SOURCE_ROWS), under_way])
        self._rows = candidate_set(encoding, required, rng)
        self._tried = np.isin(self._rows, history.rows)
        positions = encoding.positions(self._rows)

        failed = history.failed[training]
        timed = training[~failed]
        points, log_ms = self._points(history.rows[timed]), history.log_ms[timed]
        data = encoding.axes, positions, points, log_ms
        plain = plain_prior(len(encoding.axes), len(self._rows))
        chosen = alone = TimeFit(*data, plain, last.time_without_sources)
        time, self._failed_elsewhere = None, np.zeros(len(self._rows))
        if transfer.models:
            prediction = transfer.predict(self._rows)
            self._failed_elsewhere = prediction.failure_probability
            with_sources = TimeFit(*data, prediction.times, last.time)
            time = with_sources.kernel.values
            if with_sources.evidence >= alone.evidence:
                chosen = with_sources
        self._times = TimeModel(chosen, positions, points, log_ms, history.log_cost[timed])
        for point in self._points(under_way):
            self._begin(point)

        failure = last.failure
        self._failures: FailureModel | None = None
        if failed.any():
            points = self._points(history.rows[training])
            self._failures = FailureModel(encoding.axes, positions, points, failed, failure)
            failure = self._failures.kernel.values
        self.hyperparameters = Hyperparameters(time, alone.kernel.values, failure)

    def propose(self, count: int) -> list[int]:
        """Choose rows to try next, the most promising first; fewer where fewer candidates are left.

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
        chosen: list[int] = []
        for _ in range(min(count, int((~self._tried).sum()))):
            score = log_expected_improvement(best, mean, self._times.deviation) + weight
            left = acceptable & ~self._tried
            score[~left if left.any() else self._tried] = -np.inf
            point = int(np.argmax(score))
            chosen.append(point)
            self._begin(point)
        return [int(self._rows[point]) for point in chosen]

    def update(self) -> None:
        """Condition on the trials that the history has got since, all of them of rows that were proposed."""
        history, new = self._history, slice(self._learnt, None)
        trials = zip(history.rows[new], history.log_ms[new], history.log_cost[new], strict=True)
        for row, log_ms, log_cost in trials:
            (point,) = self._points([row])
            self._times.end(point, log_ms, log_cost)
            if self._failures is not None:
                self._failures.add(point, failed=math.isnan(log_ms))
        self._learnt = len(history)

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
        root = np.linalg.cholesky(self._times.covariance(likeliest) + 1e-5 * np.eye(len(likeliest)))
        drawn = mean[likeliest] + rng.standard_normal((draws, len(likeliest))) @ root.T
        works = rng.random(drawn.shape) >= self._failure_probability()[likeliest]
        return np.asarray((np.where(works, drawn, np.inf).min(axis=1) - best) * self._times.scale)

    def _begin(self, point: int) -> None:
        self._tried[point] = True
        self._times.begin(point)

    def _failure_probability(self) -> Floats:
        if self._failures is None:
            return self._failed_elsewhere
        probability = self._failures.probability() + self._failed_elsewhere
        return np.clip(probability, 0.0, MAX_FAILURE_PROBABILITY)

    def _points(self, rows: Indices | Sequence[int]) -> list[int]:
        """Indices of rows among the candidates."""
        return [int(point) for point in np.searchsorted(self._rows, rows)]
