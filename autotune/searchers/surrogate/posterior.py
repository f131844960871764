"""What some measurements say of every candidate, kept up to date one measurement at a time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from autotune.searchers.surrogate.encoding import Floats, Positions
from autotune.searchers.surrogate.kernel import Kernel

SMALLEST_VARIANCE = 1e-6


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
        corner = math.sqrt(max(covariance[point] + self._noise - link @ link, SMALLEST_VARIANCE))
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
        self.variance = np.maximum(self.variance - np.einsum("ij,ij->j", cross, cross), SMALLEST_VARIANCE)

    def _reserve(self, count: int) -> None:
        if count <= len(self._cross):
            return
        size, now = max(32, count * 3 // 2), len(self._cross)
        cross = np.empty((size, self._cross.shape[1]), dtype=np.float32)
        root = np.zeros((size, size))
        cross[:now], root[:now, :now] = self._cross, self._root
        self._cross, self._root = cross, root
