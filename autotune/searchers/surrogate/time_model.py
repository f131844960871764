"""A Gaussian process for the log times of candidates, with a prior that may come from other devices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.searchers.surrogate.encoding import Axis, Floats, Positions
from autotune.searchers.surrogate.gaussian_process import (
    HyperPrior,
    Kernel,
    default_hyper_prior,
    fit,
)


@dataclass(frozen=True, eq=False)
class TimePrior:
    """What is expected of log times before any is known.

    Attributes:
        hyper: of the hyperparameters of the process.
        mean: of every candidate, in units of the scale.
        basis: values of the basis functions, shape (candidates, functions).
        scale: unit of log times; None is their standard deviation.
    """

    hyper: HyperPrior
    mean: Floats
    basis: Floats
    scale: float | None = None


def plain_prior(axes: int, candidates: int) -> TimePrior:
    """The prior without results of other devices."""
    return TimePrior(default_hyper_prior(axes), np.zeros(candidates), np.empty((candidates, 0)))


class TimeFit:
    """A process for log times, fitted to some of them under a prior: kernel, offset and log evidence."""

    def __init__(
        self,
        axes: Sequence[Axis],
        positions: Positions,
        points: list[int],
        log_ms: Floats,
        prior: TimePrior,
        start: Floats | None,
    ) -> None:
        """Fit to the log times of points; the optimiser starts from hyperparameters, if there are any."""
        self.prior = prior
        self.scale = max(float(log_ms.std()), 1e-3) if prior.scale is None else prior.scale
        residuals = log_ms / self.scale - prior.mean[points]
        self.offset = float(residuals.mean())
        kernel = Kernel(axes, prior.hyper.mean if start is None else start)
        targets, basis = residuals - self.offset, prior.basis[points]
        self.kernel, evidence = fit(kernel, prior.hyper, positions[points], targets, basis)
        self.evidence = evidence - len(log_ms) * math.log(self.scale)
