"""What is believed of every candidate: its time, its chance to fail, and what trying it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

from autotune.searchers.surrogate.candidate_set import Indices, candidates
from autotune.searchers.surrogate.encoding import Axis, Floats, Positions, positions_of
from autotune.searchers.surrogate.gaussian_process import Kernel, Posterior, fit, hyper_prior
from autotune.searchers.surrogate.history import History
from autotune.searchers.surrogate.transfer import TransferModel, TransferPrediction
from autotune.space.enumeration import Rows

MAX_LEARNT = 500  # measurements that a model is made of; beyond it the fastest half and a sample
SUREST_FAILURE = 0.98
MANY_FAILURES = 0.1  # share of the trials, counted as SOME_TRIALS at least; beyond it
LIKELY_FAILURE = 0.15  # what is likelier to fail is proposed only when nothing else is left
SOME_TRIALS = 30
NOISE_OF_FAILURES = 0.05
MAX_DRAWN = 300  # candidates that are drawn together
FOREIGN_ROWS = 1000  # of the fastest elsewhere, that are candidates here in any case


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """Of every process, handed from one model to the next as the point to start from."""

    time: Floats | None = None
    time_alone: Floats | None = None  # without the times of other devices
    failure: Floats | None = None


class Model:
    """A Gaussian process for log times, with a mean from other devices, and one for failures."""

    def __init__(
        self,
        rows: Rows,
        axes: tuple[Axis, ...],
        knowledge: TransferModel,
        seen: History,
        last: Hyperparameters,
        rng: np.random.Generator,
    ) -> None:
        """At least two of what is seen have a time."""
        learnt = _learnt(seen, rng)
        wanted = np.concatenate([seen.rows[learnt], knowledge.rows(FOREIGN_ROWS)])
        self.rows = candidates(rows, axes, wanted, rng)
        self._positions = positions_of(rows[self.rows], axes)
        self._foresight = knowledge.predict(self.rows, self._positions)
        self._tried = np.isin(self.rows, seen.rows)
        self._trials = [int(trial) for trial in learnt if not seen.failed[trial]]
        self._time, time, alone = self._fit_time(axes, seen, last)
        self._labels = seen.failed[learnt].astype(float)
        self._failure: Posterior | None = None
        failure = last.failure
        if self._labels.any():
            self._failure, failure = self._fit_failure(axes, self._places(seen.rows[learnt]), failure)
        self.hyperparameters = Hyperparameters(time, alone, failure)

    def propose(self, count: int, seen: History) -> list[int]:
        """Rows to try next, the most promising first; fewer where fewer candidates are left.

        The first is where the expected improvement per second is greatest. Each further one is chosen as if
        those before it had come out as expected (kriging believer; Ginsbourger, Le Riche and Carraro,
        Kriging is well-suited to parallelize optimization, 2010). After many failures likely ones come
        last: where a time is expected to be far better than all others, no probability below 1 keeps it away.
        """
        mean, log_cost = self._expectations(seen)
        failing = self._failing()
        log_odds = np.log1p(-failing) - log_cost
        many = seen.failed.sum() > MANY_FAILURES * max(len(seen), SOME_TRIALS)
        acceptable = failing <= (LIKELY_FAILURE if many else 1.0)
        best = self._scaled(seen.log_ms[~seen.failed]).min()
        chosen: list[int] = []
        for _ in range(min(count, int((~self._tried).sum()))):
            gain = log_expected_improvement(best, mean, np.sqrt(self._time.variance)) + log_odds
            left = acceptable & ~self._tried
            gain[~left if left.any() else self._tried] = -np.inf
            point = int(np.argmax(gain))
            chosen.append(point)
            self._tried[point] = True
            self._time.add(point)
        return [int(self.rows[point]) for point in chosen]

    def learn(self, seen: History, count: int) -> None:
        """Take in the last `count` observations, which were proposed last."""
        self._trials += range(len(seen) - count, len(seen))
        if self._failure is not None:
            for point, failed in zip(self._places(seen.rows[-count:]), seen.failed[-count:], strict=True):
                self._failure.add(point)
                self._labels = np.append(self._labels, float(failed))

    def sample_best(self, seen: History, draws: int, rng: np.random.Generator) -> Floats:
        """What the best of all untried candidates may be: draws of its log time over the best one seen.

        Candidates depend on each other, so they are drawn together: those that are likeliest to be better.
        """
        mean, _ = self._expectations(seen)
        best = self._scaled(seen.log_ms[~seen.failed]).min()
        score = (best - mean) / np.sqrt(self._time.variance)
        score[self._tried] = -np.inf
        untried = int((~self._tried).sum())
        if not untried:
            return np.zeros(draws)
        likeliest = np.argsort(-score, kind="stable")[: min(MAX_DRAWN, untried)]
        root = np.linalg.cholesky(self._time.joint_covariance(likeliest) + 1e-5 * np.eye(len(likeliest)))
        drawn = mean[likeliest] + rng.standard_normal((draws, len(likeliest))) @ root.T
        works = rng.random(drawn.shape) >= self._failing()[likeliest]
        return np.asarray((np.where(works, drawn, np.inf).min(axis=1) - best) * self._scale)

    def _fit_time(
        self, axes: tuple[Axis, ...], seen: History, last: Hyperparameters
    ) -> tuple[Posterior, Floats | None, Floats]:
        """With the times of other devices, or without them where that explains the times here better."""
        points, logs = self._places(seen.rows[self._trials]), seen.log_ms[self._trials]
        fits = [
            _TimeFit(axes, self._foresight.without_times(), self._positions, points, logs, last.time_alone)
        ]
        if self._foresight.functions.shape[1]:
            fits.append(_TimeFit(axes, self._foresight, self._positions, points, logs, last.time))
        chosen = max(reversed(fits), key=lambda fitted: fitted.evidence)
        self._foresight, self._scale, self._offset = chosen.foresight, chosen.scale, chosen.offset
        posterior = Posterior(chosen.kernel, self._positions, chosen.foresight.functions, points)
        return posterior, fits[1].kernel.values if len(fits) > 1 else None, fits[0].kernel.values

    def _fit_failure(
        self, axes: tuple[Axis, ...], points: list[int], last: Floats | None
    ) -> tuple[Posterior, Floats]:
        before = hyper_prior(len(axes), noise=NOISE_OF_FAILURES)
        rate = self._rate()
        targets = (self._labels - rate) / math.sqrt(rate * (1.0 - rate))
        nothing = np.empty((len(self._positions), 0))
        start = Kernel(axes, before.mean if last is None else last)
        kernel, _ = fit(start, before, self._positions[points], targets, nothing[points])
        return Posterior(kernel, self._positions, nothing, points), kernel.values

    def _expectations(self, seen: History) -> tuple[Floats, Floats]:
        """Scaled log time and log cost of every candidate, from one solution of the same system."""
        logs, costs = seen.log_ms[self._trials], seen.log_cost[self._trials]
        points = np.array(self._time.points)
        residuals = self._residuals(logs, points)
        believed = np.isnan(logs)  # failed since the fit: they say nothing of times
        known = ~np.isnan(costs) & ~believed
        centre = costs[known].mean() if known.any() else 0.0
        costs = np.where(known, costs - centre, 0.0)
        if believed.any():
            residuals[believed] = 0.0
            residuals[believed] = self._time.means(residuals)[points[believed]]
        mean, log_cost = self._time.means(np.column_stack([residuals, costs]))
        return mean + self._foresight.mean + self._offset, log_cost + centre

    def _failing(self) -> NDArray[np.float64]:
        if self._failure is None:
            return self._foresight.failing
        rate = self._rate()
        probability = rate + self._failure.means(self._labels - rate) + self._foresight.failing
        return np.asarray(np.clip(probability, 0.0, SUREST_FAILURE))

    def _rate(self) -> float:
        return float((self._labels.sum() + 0.5) / (len(self._labels) + 1.0))

    def _residuals(self, logs: Floats, points: NDArray[np.intp] | list[int]) -> Floats:
        return self._scaled(logs) - self._foresight.mean[points] - self._offset

    def _scaled(self, logs: Floats) -> Floats:
        return logs / self._scale

    def _places(self, rows: Indices) -> list[int]:
        """Where rows stand among the candidates."""
        return [int(place) for place in np.searchsorted(self.rows, rows)]


class _TimeFit:
    """A process for log times in the units that suit it: kernel, scale and offset, and what speaks for it."""

    def __init__(
        self,
        axes: tuple[Axis, ...],
        foresight: TransferPrediction,
        positions: Positions,
        points: list[int],
        logs: Floats,
        start: Floats | None,
    ) -> None:
        self.foresight = foresight
        has_functions = foresight.functions.shape[1] > 0
        self.scale = foresight.scale if has_functions else max(float(logs.std()), 1e-3)
        residuals = logs / self.scale - foresight.mean[points]
        self.offset = float(residuals.mean())
        kernel = Kernel(axes, foresight.before.mean if start is None else start)
        functions = foresight.functions[points]
        self.kernel, evidence = fit(
            kernel, foresight.before, positions[points], residuals - self.offset, functions
        )
        self.evidence = evidence - len(logs) * math.log(self.scale)


def _learnt(seen: History, rng: np.random.Generator) -> Indices:
    """Which observations to learn from, fastest first."""
    order = np.argsort(seen.log_ms, kind="stable")  # nan last
    if len(order) <= MAX_LEARNT:
        return order
    half = MAX_LEARNT // 2
    return np.concatenate([order[:half], rng.choice(order[half:], half, replace=False)])


HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


def log_expected_improvement(best: float, mean: Floats, deviation: Floats) -> Floats:
    """Log of the expected amount by which a normal value falls below `best`; finite far above it too.

    Source: Ament, Daulton, Eriksson, Balandat and Bakshy, Unexpected Improvements to Expected Improvement
    for Bayesian Optimization (NeurIPS 2023), section 4.1.
    """
    z = (best - mean) / deviation
    log_density = -0.5 * z**2 - HALF_LOG_2_PI
    above = z > -1.0
    high, low = z[above], z[~above]
    gain = np.empty_like(z)
    gain[above] = np.log(np.exp(log_density[above]) + high * ndtr(high))
    # 1 + z * Phi(z) / phi(z), which cancels: 1 / z^2 where its terms are no longer told apart
    tail = 1.0 + low * math.sqrt(math.pi / 2) * erfcx(-low / math.sqrt(2))
    gain[~above] = log_density[~above] + np.log(np.where(low < -1e3, low**-2.0, np.maximum(tail, 1e-300)))
    return np.log(deviation) + gain
