"""The kernel of a Gaussian process over the parameters, with basis functions, and its fit to measurements.

The correlation of two values of a parameter is 1 - depth + depth * Matern-5/2 of their distance. A parameter
that hardly matters leaves all configurations correlated, and one that matters still leaves some correlation
(an ANOVA kernel: main effects and interactions; Rasmussen and Williams, Gaussian Processes for Machine
Learning, 2006, sections 4.2 and 5.4). Basis functions have weights with a normal prior (section 2.7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from autotune.searchers.surrogate.encoding import Axis, Floats, Indices, Positions

MIN_NOISE = 1e-6
MAX_ITERATIONS = 25  # of the optimiser, which starts from the previous fit
CACHED_ELEMENTS = 2**16  # of a matrix that stay in a core's cache
JOINED_ROWS = 128  # of a table of several axes
ROOT_5 = math.sqrt(5.0)
VARIANCE, NOISE = 0, 1  # indices of the logarithms of these two hyperparameters


def slices_of(axes: int) -> tuple[slice, slice, slice]:
    """The slices of the other hyperparameters of a kernel over so many axes, all of them unbounded.

    They are the log length scale of each axis, the logit of its depth, and the log variance of each basis
    function's weight.
    """
    return slice(2, 2 + axes), slice(2 + axes, 2 + 2 * axes), slice(2 + 2 * axes, None)


@dataclass(frozen=True, eq=False)
class HyperPrior:
    """Independent normal priors of a kernel's hyperparameters."""

    mean: Floats
    deviation: Floats  # standard deviation


def default_hyper_prior(axes: int, basis: int = 0, *, noise: float = 0.01) -> HyperPrior:
    """Assume that times are smooth over most of an axis and that every parameter may matter."""
    mean = [0.0, math.log(noise), *[math.log(0.7)] * axes, *[2.0] * axes, *[math.log(0.1)] * basis]
    deviation = [0.7, 1.5, *[1.0] * axes, *[1.5] * axes, *[1.0] * basis]
    return HyperPrior(np.array(mean), np.array(deviation))


@dataclass(frozen=True, eq=False)
class Kernel:
    """A covariance function over some axes; the hyperparameters are in the order of `slices_of`."""

    axes: Sequence[Axis]
    hyperparameters: Floats

    @property
    def variance(self) -> float:
        """Variance of the process without the basis functions."""
        return math.exp(self.hyperparameters[VARIANCE])

    @property
    def noise(self) -> float:
        """Variance of a measurement."""
        return math.exp(self.hyperparameters[NOISE]) + MIN_NOISE

    @property
    def weights(self) -> Floats:
        """Prior variance of the weight of each basis function."""
        return np.exp(self.hyperparameters[slices_of(len(self.axes))[2]])

    def correlations(self) -> list[Floats]:
        """For each axis the correlation of its values, shape (values, values)."""
        return [correlation for correlation, _, _ in self.correlations_with_gradients()]

    def covariance(self, left: Positions, right: Positions) -> Floats:
        """Covariance without the basis functions: (left, axes) and (right, axes) give (left, right)."""
        if len(left) < len(right):
            return np.ascontiguousarray(self.covariance(right, left).T)
        covariance = np.full((len(left), len(right)), self.variance)
        # whole rows of these are looked up, which is faster than single elements
        tables = [table[:, column] for table, column in zip(self.correlations(), right.T, strict=True)]
        joined = _joined(tables, left.T)
        step = max(1, CACHED_ELEMENTS // max(1, len(right)))
        for start in range(0, len(left), step):
            block = covariance[start : start + step]
            for table, column in joined:
                block *= table[column[start : start + step]]
        return covariance

    def correlations_with_gradients(self) -> list[tuple[Floats, Floats, Floats]]:
        """For each axis its correlations with their derivatives by log length and by logit of the depth."""
        of_lengths, of_depths, _ = slices_of(len(self.axes))
        lengths, logits = np.exp(self.hyperparameters[of_lengths]), self.hyperparameters[of_depths]
        by_axis = []
        for axis, length, logit in zip(self.axes, lengths, logits, strict=True):
            depth = 1.0 / (1.0 + math.exp(-logit))
            scaled = ROOT_5 * axis.distances / length
            decay = np.exp(-scaled)
            matern = (1.0 + scaled + scaled**2 / 3.0) * decay
            by_length = depth * scaled**2 / 3.0 * (1.0 + scaled) * decay
            by_axis.append((1.0 - depth + depth * matern, by_length, depth * (1.0 - depth) * (matern - 1.0)))
        return by_axis


def _joined(tables: Sequence[Floats], columns: Positions) -> list[tuple[Floats, Indices]]:
    """Multiply the tables of successive axes, which saves look-ups; each comes with the rows to look up.

    A table has a row for each value. One of several axes has at most JOINED_ROWS, and no more than are looked
    up, or making it would take longer.
    """
    joined: list[tuple[Floats, Indices]] = []
    for table, column in zip(tables, columns, strict=True):
        if joined and len(joined[-1][0]) * len(table) <= min(JOINED_ROWS, len(column)):
            left, rows = joined.pop()
            product = (left[:, None] * table).reshape(len(left) * len(table), table.shape[1])
            joined.append((product, rows * len(table) + column))
        else:
            joined.append((table, column))
    return joined


def fit(
    start: Kernel, prior: HyperPrior, positions: Positions, targets: Floats, basis: Floats
) -> tuple[Kernel, float]:
    """Find the most probable hyperparameters given some measurements.

    Args:
        start: the kernel whose hyperparameters the optimiser starts from.
        prior: the prior of the hyperparameters.
        positions: of the measured configurations, shape (n, axes).
        targets: measured values, shape (n,), with a mean of about 0.
        basis: values of the basis functions, shape (n, functions).

    Returns:
        The kernel, and the log of likelihood times prior, up to a constant for the number of targets.
    """
    objective = _NegativeLogPosterior(start.axes, prior, positions, targets, basis)
    bounds = list(zip(prior.mean - 4 * prior.deviation, prior.mean + 4 * prior.deviation, strict=True))
    options = {"maxiter": MAX_ITERATIONS}
    optimum = scipy.optimize.minimize(
        objective, start.hyperparameters, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return replace(start, hyperparameters=optimum.x), -float(optimum.fun)


class _NegativeLogPosterior:
    """The negative log posterior of hyperparameters, with its gradient."""

    def __init__(
        self,
        axes: Sequence[Axis],
        prior: HyperPrior,
        positions: Positions,
        targets: Floats,
        basis: Floats,
    ) -> None:
        self._axes = axes
        self._prior = prior
        self._targets = targets
        # all matrices are symmetric: their lower triangles are kept as vectors
        rows, columns = self._lower = np.tril_indices(len(targets))
        self._entries = rows * len(targets) + columns  # where they are in a matrix
        self._diagonal = np.flatnonzero(rows == columns)
        self._outer = [function[rows] * function[columns] for function in basis.T]
        self._pairs = [  # for each axis the index into its flat table of correlations
            column[rows] * len(axis.coordinates) + column[columns]
            for axis, column in zip(axes, positions.T, strict=True)
        ]

    def __call__(self, values: Floats) -> tuple[float, Floats]:
        kernel = Kernel(self._axes, values)
        tables = kernel.correlations_with_gradients()
        factors = [table.ravel()[pairs] for (table, _, _), pairs in zip(tables, self._pairs, strict=True)]
        product = np.full(len(self._entries), kernel.variance)
        for factor in factors:
            product *= factor
        entries = product + sum(
            weight * outer for weight, outer in zip(kernel.weights, self._outer, strict=True)
        )
        entries[self._diagonal] += kernel.noise
        covariance = np.zeros((len(self._targets),) * 2)
        covariance.ravel()[self._entries] = entries
        try:
            root = scipy.linalg.cholesky(covariance, lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            return 1e10, np.zeros_like(values)
        solved = scipy.linalg.cho_solve((root, True), self._targets, check_finite=False)
        standardized = (values - self._prior.mean) / self._prior.deviation
        loss = 0.5 * self._targets @ solved + np.log(np.diag(root)).sum() + 0.5 * standardized @ standardized
        inverse, _ = scipy.linalg.lapack.dpotri(root, lower=1)  # its lower triangle
        by_entry = inverse.ravel()[self._entries] - solved[self._lower[0]] * solved[self._lower[1]]
        by_entry[self._diagonal] *= 0.5  # the other entries count for the upper triangle, too
        gradient = standardized / self._prior.deviation
        shares = by_entry * product
        gradient[VARIANCE] += shares.sum()
        gradient[NOISE] += by_entry[self._diagonal].sum() * (kernel.noise - MIN_NOISE)
        lengths, depths, weights = (gradient[at] for at in slices_of(len(self._axes)))
        for index, ((_, by_length, by_logit), factor) in enumerate(zip(tables, factors, strict=True)):
            by_pair = np.bincount(self._pairs[index], shares / factor, by_length.size)
            lengths[index] += by_pair @ by_length.ravel()
            depths[index] += by_pair @ by_logit.ravel()
        for index, (weight, outer) in enumerate(zip(kernel.weights, self._outer, strict=True)):
            weights[index] += weight * (by_entry @ outer)
        return float(loss), gradient
