"""A Gaussian process for failures: how likely each candidate is to fail, by the outcomes of others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.searchers.surrogate.encoding import Axis, Floats, Positions
from autotune.searchers.surrogate.gaussian_process import Kernel, default_hyper_prior, fit
from autotune.searchers.surrogate.posterior import Posterior

NOISE = 0.05


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

        The optimiser starts from hyperparameters, if there are any. With `is_fixed` they are kept.
        """
        self._outcomes = [float(outcome) for outcome in failed]
        prior, rate = default_hyper_prior(len(axes), noise=NOISE), self._rate
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
