"""The surrogate model of a search: the time, the failure probability and the cost of every candidate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.searchers.surrogate.candidate_set import candidate_set
from autotune.searchers.surrogate.encoding import Axis, Encoding, Floats, Indices
from autotune.searchers.surrogate.expected_improvement import log_expected_improvement
from autotune.searchers.surrogate.gaussian_process import Kernel, Posterior, default_hyper_prior, fit
from autotune.searchers.surrogate.history import History, training_sample
from autotune.searchers.surrogate.time_model import TimeFit, plain_prior
from autotune.searchers.surrogate.transfer import TransferModel

MAX_TRAINING = 500  # trials that a model is fitted to: of more, the fastest half and a sample
MAX_FAILURE_PROBABILITY = 0.98
MANY_FAILURES = 0.1  # share of the trials, or of MIN_TRIALS, above which likely failures come last
MIN_TRIALS = 30
LIKELY_FAILURE = 0.15  # failure probability of what then comes last
FAILURE_NOISE = 0.05
MAX_DRAWN = 300  # candidates whose times are drawn jointly
MAX_SOURCE_ROWS = 1000  # fastest configurations of the sources that are always candidates
_PENDING = -1


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """Hyperparameters of the latest fits, from which the next ones start."""

    time: Floats | None = None
    time_without_sources: Floats | None = None
    failure: Floats | None = None


class Model:
    """One Gaussian process for log times, with a mean from other devices, and one for failures."""

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
        training = training_sample(
            np.argsort(history.log_ms, kind="stable"), MAX_TRAINING, rng
        )  # failures last
        under_way = np.array(pending, np.intp)
        required = np.concatenate([history.rows[training], transfer.fastest_rows(MAX_SOURCE_ROWS), under_way])
        self.rows = candidate_set(encoding, required, rng)
        self._positions = encoding.positions(self.rows)
        self._tried = np.isin(self.rows, history.rows)
        # of each point of the process for times, where its trial is in the history; _PENDING before it ends
        self._trials = [int(trial) for trial in training if not history.failed[trial]]

        points, log_ms = self._points(history.rows[self._trials]), history.log_ms[self._trials]
        data = encoding.axes, self._positions, points, log_ms
        plain = plain_prior(len(encoding.axes), len(self.rows))
        chosen = alone = TimeFit(*data, plain, last.time_without_sources)
        time, self._failed_elsewhere = None, np.zeros(len(self.rows))
        if transfer.models:
            prediction = transfer.predict(self.rows)
            self._failed_elsewhere = prediction.failure_probability
            with_sources = TimeFit(*data, prediction.times, last.time)
            time = with_sources.kernel.values
            if with_sources.evidence >= alone.evidence:
                chosen = with_sources
        self._prior, self._scale, self._offset = chosen.prior, chosen.scale, chosen.offset
        self._time = Posterior(chosen.kernel, self._positions, chosen.prior.basis, points)
        for point in self._points(under_way):
            self._begin(point)

        self._failures = history.failed[training].astype(float)
        self._failure: Posterior | None = None
        failure = last.failure
        if self._failures.any():
            self._failure = self._fit_failure(encoding.axes, self._points(history.rows[training]), failure)
            failure = self._failure.kernel.values
        self.hyperparameters = Hyperparameters(time, alone.kernel.values, failure)

    def propose(self, count: int, history: History) -> list[int]:
        """Choose rows to try next, the most promising first; fewer where fewer candidates are left.

        The first one has the greatest expected improvement per second. Each further one is chosen as if those
        before it had come out as expected (kriging believer; Ginsbourger, Le Riche and Carraro, Kriging is
        well-suited to parallelize optimization, 2010). After many failures, likely ones come last: no
        probability below 1 would outweigh an expected time far better than all others.
        """
        mean, log_cost = self._expectations(history)
        failure_probability = self._failure_probability()
        weight = np.log1p(-failure_probability) - log_cost
        many = history.failed.sum() > MANY_FAILURES * max(len(history), MIN_TRIALS)
        acceptable = failure_probability <= (LIKELY_FAILURE if many else 1.0)
        best = self._best(history)
        chosen: list[int] = []
        for _ in range(min(count, int((~self._tried).sum()))):
            score = log_expected_improvement(best, mean, np.sqrt(self._time.variance)) + weight
            left = acceptable & ~self._tried
            score[~left if left.any() else self._tried] = -np.inf
            point = int(np.argmax(score))
            chosen.append(point)
            self._begin(point)
        return [int(self.rows[point]) for point in chosen]

    def update(self, history: History, count: int) -> None:
        """Condition on the last `count` trials, of rows that were proposed."""
        first = len(history) - count
        for trial, point in enumerate(self._points(history.rows[first:]), first):
            self._trials[self._time.points.index(point)] = trial
            if self._failure is not None:
                self._failure.add(point)
        if self._failure is not None:
            self._failures = np.append(self._failures, history.failed[first:].astype(float))

    def _begin(self, point: int) -> None:
        """Expect of a point what the others predict, until its trial ends."""
        self._tried[point] = True
        self._time.add(point)
        self._trials.append(_PENDING)

    def sample_best(self, history: History, draws: int, rng: np.random.Generator) -> Floats:
        """Draw the log of the best untried candidate's time over the best time so far.

        The likeliest to be better are drawn jointly, because candidates depend on each other.
        """
        untried = int((~self._tried).sum())
        if not untried:
            return np.zeros(draws)
        mean, _ = self._expectations(history)
        best = self._best(history)
        score = (best - mean) / np.sqrt(self._time.variance)
        score[self._tried] = -np.inf
        likeliest = np.argsort(-score, kind="stable")[: min(MAX_DRAWN, untried)]
        root = np.linalg.cholesky(self._time.joint_covariance(likeliest) + 1e-5 * np.eye(len(likeliest)))
        drawn = mean[likeliest] + rng.standard_normal((draws, len(likeliest))) @ root.T
        works = rng.random(drawn.shape) >= self._failure_probability()[likeliest]
        return np.asarray((np.where(works, drawn, np.inf).min(axis=1) - best) * self._scale)

    def _fit_failure(self, axes: tuple[Axis, ...], points: list[int], last: Floats | None) -> Posterior:
        prior = default_hyper_prior(len(axes), noise=FAILURE_NOISE)
        rate = self._failure_rate()
        targets = (self._failures - rate) / math.sqrt(rate * (1.0 - rate))
        no_basis = np.empty((len(self._positions), 0))
        start = Kernel(axes, prior.mean if last is None else last)
        kernel, _ = fit(start, prior, self._positions[points], targets, no_basis[points])
        return Posterior(kernel, self._positions, no_basis, points)

    def _expectations(self, history: History) -> tuple[Floats, Floats]:
        """Scaled log time and log cost of every candidate, from one solution of the same system."""
        trials = np.array(self._trials)
        log_ms, log_cost = (
            np.where(trials == _PENDING, np.nan, values[trials])
            for values in (history.log_ms, history.log_cost)
        )
        points = np.array(self._time.points)
        residuals = log_ms / self._scale - self._prior.mean[points] - self._offset
        failed = np.isnan(log_ms)  # since the fit, or not ended yet
        known = ~np.isnan(log_cost) & ~failed
        mean_cost = log_cost[known].mean() if known.any() else 0.0
        costs = np.where(known, log_cost - mean_cost, 0.0)
        if failed.any():  # they say nothing of times: expect of them what the others predict
            residuals[failed] = 0.0
            residuals[failed] = self._time.means(residuals)[points[failed]]
        mean, cost = self._time.means(np.column_stack([residuals, costs]))
        return mean + self._prior.mean + self._offset, cost + mean_cost

    def _failure_probability(self) -> Floats:
        if self._failure is None:
            return self._failed_elsewhere
        rate = self._failure_rate()
        probability = rate + self._failure.means(self._failures - rate) + self._failed_elsewhere
        return np.asarray(np.clip(probability, 0.0, MAX_FAILURE_PROBABILITY))

    def _failure_rate(self) -> float:
        return float((self._failures.sum() + 0.5) / (len(self._failures) + 1.0))

    def _best(self, history: History) -> float:
        """The scaled log of the best time."""
        return float((history.log_ms[~history.failed] / self._scale).min())

    def _points(self, rows: Indices) -> list[int]:
        """Indices of rows among the candidates."""
        return [int(point) for point in np.searchsorted(self.rows, rows)]
