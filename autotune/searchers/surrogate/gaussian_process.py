"""The covariance of two configurations: a product over the parameters, one small table for each.

Between two values of a parameter the correlation is 1 - depth + depth * Matern-5/2 of their distance, so
a parameter that hardly matters keeps everything correlated, and one that matters still leaves something
in common (an ANOVA kernel: main effects and interactions; Rasmussen and Williams, Gaussian Processes for
Machine Learning, 2006, sections 4.2 and 5.4). Beside it stand known functions with weights to be found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from autotune.searchers.surrogate.encoding import Axis, Floats, Positions

MIN_NOISE = 1e-6
STEPS = 25  # of the optimiser, from the values found last time
ROOT_5 = math.sqrt(5.0)


@dataclass(frozen=True, eq=False)
class HyperPrior:
    """Hyperparameters before any data: normal, all on scales without bounds.

    In order: log variance, log noise variance, log length for each axis, logit of the depth for each
    axis, log variance of the weight of each known function.
    """

    mean: Floats
    spread: Floats


def hyper_prior(axes: int, functions: int = 0, *, noise: float = 0.01) -> HyperPrior:
    """What is assumed of any kernel: smooth over most of an axis, every parameter may matter."""
    mean = [0.0, math.log(noise), *[math.log(0.7)] * axes, *[2.0] * axes, *[2 * math.log(0.5)] * functions]
    spread = [0.7, 1.5, *[1.0] * axes, *[1.5] * axes, *[1.0] * functions]
    return HyperPrior(np.array(mean), np.array(spread))


@dataclass(frozen=True, eq=False)
class Kernel:
    """Hyperparameters in the order of `Belief`, over some axes."""

    axes: Sequence[Axis]
    values: Floats

    @property
    def variance(self) -> float:
        """Variance of the unknown part."""
        return math.exp(self.values[0])

    @property
    def noise(self) -> float:
        """Variance of a measurement."""
        return math.exp(self.values[1]) + MIN_NOISE

    @property
    def weights(self) -> Floats:
        """Prior variance of the weight of each known function."""
        return np.exp(self.values[2 + 2 * len(self.axes) :])

    def tables(self) -> list[Floats]:
        """For each axis the correlation of its values, shape (values, values)."""
        return [table for table, _, _ in self.tables_and_slopes()]

    def covariance(self, left: Positions, right: Positions) -> Floats:
        """Of the unknown part, for every pair: (left, axes) and (right, axes) give (left, right)."""
        covariance = np.full((len(left), len(right)), self.variance)
        for table, rows, columns in zip(self.tables(), left.T, right.T, strict=True):
            covariance *= table[rows][:, columns]
        return covariance

    def tables_and_slopes(self) -> list[tuple[Floats, Floats, Floats]]:
        """Each table with its derivatives by log length and by the logit of the depth."""
        count = len(self.axes)
        lengths, logits = np.exp(self.values[2 : 2 + count]), self.values[2 + count : 2 + 2 * count]
        found = []
        for axis, length, logit in zip(self.axes, lengths, logits, strict=True):
            depth = 1.0 / (1.0 + math.exp(-logit))
            scaled = ROOT_5 * axis.distances / length
            decay = np.exp(-scaled)
            matern = (1.0 + scaled + scaled**2 / 3.0) * decay
            by_length = depth * scaled**2 / 3.0 * (1.0 + scaled) * decay
            found.append((1.0 - depth + depth * matern, by_length, depth * (1.0 - depth) * (matern - 1.0)))
        return found


def fit(
    kernel: Kernel, before: HyperPrior, positions: Positions, targets: Floats, functions: Floats
) -> tuple[Kernel, float]:
    """The most probable hyperparameters given targets, from those of `kernel` on, and what speaks for them.

    The latter is the log of likelihood times prior, up to a constant for the number of targets.

    positions (n, axes), targets (n,) with mean about 0, functions (n, functions).
    """
    objective = _Objective(kernel.axes, before, positions, targets, functions)
    bounds = list(zip(before.mean - 4 * before.spread, before.mean + 4 * before.spread, strict=True))
    found = minimize(
        objective, kernel.values, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS}
    )
    return replace(kernel, values=found.x), -float(found.fun)


class _Objective:
    """Negative log posterior of hyperparameters, with its gradient."""

    def __init__(
        self,
        axes: Sequence[Axis],
        before: HyperPrior,
        positions: Positions,
        targets: Floats,
        functions: Floats,
    ) -> None:
        self._axes = axes
        self._before = before
        self._targets = targets
        self._outer = [np.outer(function, function) for function in functions.T]
        self._pairs = [
            column[:, None] * len(axis.places) + column
            for axis, column in zip(axes, positions.T, strict=True)
        ]

    def __call__(self, values: Floats) -> tuple[float, Floats]:
        kernel, count = Kernel(self._axes, values), len(self._axes)
        tables = kernel.tables_and_slopes()
        factors = [table.ravel()[pairs] for (table, _, _), pairs in zip(tables, self._pairs, strict=True)]
        product = np.full((len(self._targets),) * 2, kernel.variance)
        for factor in factors:
            product *= factor
        whole = product + sum(w * outer for w, outer in zip(kernel.weights, self._outer, strict=True))
        whole[np.diag_indices_from(whole)] += kernel.noise
        try:
            root = cholesky(whole, lower=True, check_finite=False)
        except LinAlgError:
            return 1e10, np.zeros_like(values)
        inverse = cho_solve((root, True), np.eye(len(whole)), check_finite=False)
        solved = inverse @ self._targets
        away = (values - self._before.mean) / self._before.spread
        loss = 0.5 * self._targets @ solved + np.log(np.diag(root)).sum() + 0.5 * away @ away
        by_entry = 0.5 * (inverse - np.outer(solved, solved))
        gradient = away / self._before.spread
        gradient[0] += (by_entry * product).sum()
        gradient[1] += np.trace(by_entry) * (kernel.noise - MIN_NOISE)
        for index, ((_, by_length, by_logit), factor) in enumerate(zip(tables, factors, strict=True)):
            shares = (by_entry * product / factor).ravel()
            by_pair = np.bincount(self._pairs[index].ravel(), shares, by_length.size)
            gradient[2 + index] += by_pair @ by_length.ravel()
            gradient[2 + count + index] += by_pair @ by_logit.ravel()
        for index, (weight, outer) in enumerate(zip(kernel.weights, self._outer, strict=True)):
            gradient[2 + 2 * count + index] += weight * (by_entry * outer).sum()
        return float(loss), gradient


MIN_VARIANCE = 1e-6


class Posterior:
    """A Gaussian process on candidates, conditioned on some of them.

    Where conditioned does not depend on what was measured there, so `variance` is known as soon as a point
    is proposed, and any number of quantities measured at the same points share the work of `means`.
    Source: Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), algorithm 2.1.
    """

    def __init__(self, kernel: Kernel, positions: Positions, functions: Floats, points: list[int]) -> None:
        """Of positions (candidates, axes) and functions (candidates, functions); points: those measured."""
        self.points = list(points)
        self._kernel, self._noise, self._weights = kernel, kernel.noise, kernel.weights
        self._positions = positions
        self._functions = functions
        self.variance = kernel.variance + functions**2 @ self._weights
        self._root = np.zeros((0, 0))
        # root^-1 times the covariance of points and candidates: most of the work is to read it
        self._cross = np.empty((0, len(positions)), dtype=np.float32)
        if points:
            self._start(points)

    def add(self, point: int) -> None:
        """Condition on one more candidate."""
        count = len(self.points)
        self._reserve(count + 1)
        covariance = self._covariance([point])[0]
        link = self._solve(covariance[self.points])
        corner = math.sqrt(max(covariance[point] + self._noise - link @ link, MIN_VARIANCE))
        self._root[count, :count] = link
        self._root[count, count] = corner
        self._cross[count] = (covariance - link.astype(np.float32) @ self._cross[:count]) / corner
        self._narrow(self._cross[count : count + 1])
        self.points.append(point)

    def means(self, measured: Floats) -> Floats:
        """Expected quantities at every candidate, before any data 0.

        measured (points,) gives (candidates,), (points, quantities) gives (quantities, candidates).
        """
        solved = self._solve(measured).T.astype(np.float32)
        return np.asarray(solved @ self._cross[: len(self.points)], dtype=float)

    def joint_covariance(self, candidates: NDArray[np.intp]) -> Floats:
        """Covariance of some candidates, given the points."""
        positions, functions = self._positions[candidates], self._functions[candidates]
        before = self._kernel.covariance(positions, positions) + (functions * self._weights) @ functions.T
        cross = self._cross[: len(self.points), candidates].astype(float)
        return np.asarray(before - cross.T @ cross)

    def _start(self, points: list[int]) -> None:
        cross = self._covariance(points)
        among = cross[:, points]
        among[np.diag_indices_from(among)] += self._noise
        self._root = cholesky(among, lower=True, check_finite=False)
        self._cross = self._solve(cross).astype(np.float32)
        self._narrow(self._cross)

    def _solve(self, right: Floats) -> Floats:
        """The root of the points' covariance, inverted, times something."""
        count = len(self.points)
        root = self._root[:count, :count]
        return np.asarray(solve_triangular(root, right, lower=True, check_finite=False))

    def _covariance(self, points: list[int]) -> Floats:
        covariance = self._kernel.covariance(self._positions[points], self._positions)
        if self._functions.shape[1]:
            covariance += (self._functions[points] * self._weights) @ self._functions.T
        return covariance

    def _narrow(self, cross: NDArray[np.float32]) -> None:
        self.variance = np.maximum(self.variance - np.einsum("ij,ij->j", cross, cross), MIN_VARIANCE)

    def _reserve(self, count: int) -> None:
        if count <= len(self._cross):
            return
        size, now = max(32, count * 3 // 2), len(self._cross)
        cross = np.empty((size, self._cross.shape[1]), dtype=np.float32)
        root = np.zeros((size, size))
        cross[:now], root[:now, :now] = self._cross, self._root
        self._cross, self._root = cross, root
