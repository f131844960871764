"""The results of one other device or problem, and a Gaussian process for what it never ran."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from autotune.searchers.base import SourceResults
from autotune.searchers.surrogate.encoding import Encoding, Floats, Indices, Positions
from autotune.searchers.surrogate.gaussian_process import Kernel, default_hyper_prior, fit
from autotune.searchers.surrogate.history import MIN_SCORE, training_sample
from autotune.space import Space

MIN_RESULTS = 3  # timed results that a source's model needs
MAX_RESULTS = 400  # results that a source's model uses: half of them the fastest


class SourceModel:
    """The known times of one source, and a Gaussian process for the others."""

    def __init__(self, encoding: Encoding, rows: Indices, log_ms: Floats, rng: np.random.Generator) -> None:
        """Fit a model to ascending rows and their log_ms (nan: failed), of which MIN_RESULTS are timed."""
        self.rows, self.log_ms = rows, log_ms
        timed = np.flatnonzero(~np.isnan(log_ms))
        self.best = float(log_ms[timed].min())
        chosen = training_sample(timed[np.argsort(log_ms[timed], kind="stable")], MAX_RESULTS, rng)
        self._centre, self._scale = log_ms[chosen].mean(), max(float(log_ms[chosen].std()), 1e-3)
        self._positions = encoding.positions(rows[chosen])
        targets = (log_ms[chosen] - self._centre) / self._scale
        prior = default_hyper_prior(len(encoding.axes))
        no_basis = np.empty((len(chosen), 0))
        self.kernel, _ = fit(Kernel(encoding.axes, prior.mean), prior, self._positions, targets, no_basis)
        covariance = self.kernel.covariance(self._positions, self._positions)
        covariance[np.diag_indices_from(covariance)] += self.kernel.noise
        self._solved = np.linalg.solve(covariance, targets)

    def predict(
        self, rows: Indices, positions: Positions
    ) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]:
        """Log times of candidates, which of them ran on this source, and which failed there."""
        predicted = self._centre + self._scale * (
            self.kernel.covariance(positions, self._positions) @ self._solved
        )
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        known = self.rows[at] == rows
        log_ms = np.where(known, self.log_ms[at], np.nan)
        ran = ~np.isnan(log_ms)
        return np.where(ran, log_ms, predicted), ran, known & ~ran


def results_in_space(space: Space, source: SourceResults) -> tuple[Indices, Floats]:
    """Rows of this space that a source has results for, ascending, with their log times (nan: failed)."""
    found: dict[int, float] = {}
    for config, time_ms in source.results:
        row = space.index(config)
        if row is not None:
            found.setdefault(row, math.nan if time_ms is None else math.log(max(time_ms, MIN_SCORE)))
    rows = sorted(found)
    return np.array(rows, dtype=np.intp), np.array([found[row] for row in rows])
