"""A Gaussian process over candidates, given measurements of some of them; its hyperparameters are fixed."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from autotune.searchers.surrogate.encoding import Floats, Indices, Positions
from autotune.searchers.surrogate.gaussian_process import Kernel

MIN_VARIANCE = 1e-6


class Posterior:
    """A Gaussian process over candidates, conditioned on some of them, its points.

    The variance depends on the points alone, and not on what was measured there: it is known before their
    trials end. Quantities that are measured at the same points share one factorisation. Source: Rasmussen and
    Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1.
    """

    def __init__(self, kernel: Kernel, positions: Positions, basis: Floats, points: list[int]) -> None:
        """Condition on points; `basis` has each candidate's basis functions: (candidates, functions)."""
        self.points = list(points)
        self._kernel, self._noise, self._weights = kernel, kernel.noise, kernel.weights
        self._positions = positions
        self._basis = basis
        self.variance = kernel.variance + basis**2 @ self._weights
        self._root = np.zeros((0, 0))  # Cholesky factor of the points' covariance
        # root^-1 times the covariance of points and candidates; single precision, as reading it dominates
        self._cross = np.empty((0, len(positions)), dtype=np.float32)
        if points:
            cross = self._covariance(points)
            among = cross[:, points]
            among[np.diag_indices_from(among)] += self._noise
            self._root = scipy.linalg.cholesky(among, lower=True, check_finite=False)
            self._cross = self._solve(cross).astype(np.float32)
            self._reduce_variance(self._cross)

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
        self._reduce_variance(self._cross[count : count + 1])
        self.points.append(point)

    def means(self, measured: Floats) -> Floats:
        """Expected quantities at every candidate, 0 without data.

        Shape (points,) gives (candidates,), and (points, quantities) gives (quantities, candidates).
        """
        solved = self._solve(measured).T.astype(np.float32)
        return np.asarray(solved @ self._cross[: len(self.points)], dtype=float)

    def completed(self, measured: Floats, unknown: NDArray[np.bool_]) -> Floats:
        """Fill in the quantities of unknown points with what the other points predict there.

        Such points have no effect on `means`: the inverse covariance gives them the weight 0.
        """
        filled = measured.copy()
        filled[unknown] = 0.0
        if unknown.any():
            columns = self._solve(np.eye(len(unknown))[:, unknown])
            inverse = columns.T @ columns  # the part of the inverse covariance that belongs to these points
            filled[unknown] = -np.linalg.solve(inverse, columns.T @ self._solve(filled))
        return filled

    def joint_covariance(self, candidates: Indices) -> Floats:
        """Covariance of some candidates, given the points."""
        positions, basis = self._positions[candidates], self._basis[candidates]
        prior = self._kernel.covariance(positions, positions) + (basis * self._weights) @ basis.T
        cross = self._cross[: len(self.points), candidates].astype(float)
        return np.asarray(prior - cross.T @ cross)

    def _solve(self, right: Floats) -> Floats:
        count = len(self.points)
        root = self._root[:count, :count]
        return np.asarray(scipy.linalg.solve_triangular(root, right, lower=True, check_finite=False))

    def _covariance(self, points: list[int]) -> Floats:
        covariance = self._kernel.covariance(self._positions[points], self._positions)
        if self._basis.shape[1]:
            covariance += (self._basis[points] * self._weights) @ self._basis.T
        return covariance

    def _reduce_variance(self, cross: NDArray[np.float32]) -> None:
        self.variance = np.maximum(self.variance - np.einsum("ij,ij->j", cross, cross), MIN_VARIANCE)

    def _reserve(self, count: int) -> None:
        if count <= len(self._cross):
            return
        size, used = max(32, count * 3 // 2), len(self._cross)
        cross = np.empty((size, self._cross.shape[1]), dtype=np.float32)
        root = np.zeros((size, size))
        cross[:used], root[:used, :used] = self._cross, self._root
        self._cross, self._root = cross, root
