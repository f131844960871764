"""A Gaussian process for the log times of candidates, with a prior that may come from other devices.

It predicts log costs from the same points, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.searchers.surrogate.encoding import Axis, Floats, Indices, Positions
from autotune.searchers.surrogate.gaussian_process import HyperPrior, Kernel, default_hyper_prior, fit
from autotune.searchers.surrogate.posterior import Posterior


@dataclass(frozen=True, eq=False)
class TimePrior:
    """The expected log times before any is known."""

    hyper_prior: HyperPrior
    mean: Floats  # of every candidate, in units of the scale
    basis: Floats  # values of the basis functions, shape (candidates, functions)
    scale: float | None = None  # unit of log times; None is their standard deviation


def plain_prior(axes: int, candidates: int) -> TimePrior:
    """The prior without results of other devices: no candidate is expected to be faster than another."""
    return TimePrior(default_hyper_prior(axes), np.zeros(candidates), np.empty((candidates, 0)))


class TimeFit:
    """A process for log times, fitted to some of them under a prior: kernel, offset and log evidence."""

    def __init__(
        self,
        axes: Sequence[Axis],
        positions: Positions,
        points: list[int],
        log_score: Floats,
        prior: TimePrior,
        start: Floats | None,
        *,
        is_fixed: bool = False,
    ) -> None:
        """Fit to the log times of points.

        `start` has the hyperparameters that the optimiser starts from; None is for the mean of their prior.
        With `is_fixed` they are kept, and the evidence, which takes as long as a step of the optimiser, is
        nan.
        """
        self.prior = prior
        self.scale = max(float(log_score.std()), 1e-3) if prior.scale is None else prior.scale
        residuals = log_score / self.scale - prior.mean[points]
        self.offset = float(residuals.mean())
        kernel = Kernel(axes, prior.hyper_prior.mean if start is None else start)
        targets, basis = residuals - self.offset, prior.basis[points]
        data = prior.hyper_prior, positions[points], targets, basis
        self.kernel, evidence = (kernel, math.nan) if is_fixed else fit(kernel, *data)
        self.evidence = evidence - len(log_score) * math.log(self.scale)


class TimeModel:
    """The process of a fit, conditioned on trials; log times are in units of `scale`.

    A point is a candidate that was proposed. Until its trial ends it is pending: the time that the other
    points predict is taken for its own, so it changes no expected time or cost. If it fails, its time is
    taken as nearer the average until the next fit: a search then turns to other candidates.
    """

    def __init__(
        self, fitted: TimeFit, positions: Positions, points: list[int], log_score: Floats, log_cost: Floats
    ) -> None:
        """Condition on points with these log times and log costs; a cost that is unknown is nan."""
        self.scale = fitted.scale
        self._mean, self._offset = fitted.prior.mean, fitted.offset
        self._posterior = Posterior(fitted.kernel, positions, fitted.prior.basis, points)
        self._log_score: list[float] = log_score.tolist()  # of points; nan where unknown
        self._log_cost: list[float] = log_cost.tolist()
        self._is_pending = [False] * len(points)

    @property
    def best(self) -> float:
        """The lowest log time."""
        return float(np.nanmin(self._log_score) / self.scale)

    @property
    def deviation(self) -> Floats:
        """Standard deviation of every candidate's log time."""
        return np.sqrt(self._posterior.variance)

    def add_pending(self, point: int) -> None:
        """Condition on a candidate whose trial has not ended."""
        self._posterior.add(point)
        self._log_score.append(math.nan)
        self._log_cost.append(math.nan)
        self._is_pending.append(True)

    def tell(self, point: int, log_score: float, log_cost: float) -> None:
        """Take the outcome of a pending point; its log time is nan if it failed."""
        place = self._posterior.points.index(point)
        self._log_score[place], self._log_cost[place] = log_score, log_cost
        self._is_pending[place] = False

    def expectations(self) -> tuple[Floats, Floats]:
        """Log time and log cost of every candidate."""
        log_score, log_cost = np.array(self._log_score), np.array(self._log_cost)
        points = self._posterior.points
        residuals = log_score / self.scale - self._mean[points] - self._offset
        unknown, pending = np.isnan(log_score), np.array(self._is_pending, bool)
        known_cost = ~np.isnan(log_cost) & ~unknown
        mean_cost = log_cost[known_cost].mean() if known_cost.any() else 0.0
        costs = np.where(known_cost, log_cost - mean_cost, 0.0)
        if (failed := unknown & ~pending).any():
            residuals[failed] = 0.0
            predicted = self._posterior.means(self._posterior.completed(residuals, pending))
            residuals[failed] = predicted[np.array(points)[failed]]
        completed = self._posterior.completed(np.column_stack([residuals, costs]), pending)
        mean, cost = self._posterior.means(completed)
        return mean + self._mean + self._offset, cost + mean_cost

    def covariance(self, candidates: Indices) -> Floats:
        """Covariance of the log times of some candidates."""
        return self._posterior.joint_covariance(candidates)
