"""The results of one other device or problem, and a Gaussian process for what it never ran."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from autotune.core.records import DeviceInfo
from autotune.hardware.names import Traits, traits_of
from autotune.searchers.base import PriorResults
from autotune.searchers.surrogate.candidate_set import MAX_CANDIDATES
from autotune.searchers.surrogate.encoding import Encoding, Floats, Indices
from autotune.searchers.surrogate.gaussian_process import Kernel, default_hyper_prior, fit
from autotune.searchers.surrogate.history import MIN_SCORE, training_sample
from autotune.space import Space

MIN_RESULTS = 3  # timed results that a source's model needs
LESS_WEIGHT = 0.25  # of a source of another architecture; squared for another vendor
MAX_RESULTS = 400  # results that a source's model uses: half of them the fastest


class SourceModel:
    """The known times of one source, and a Gaussian process for the others; all relative to its best.

    Far from all that ran, the process expects the slowest time: often only the fastest are known.
    """

    def __init__(self, encoding: Encoding, rows: Indices, log_ms: Floats, rng: np.random.Generator) -> None:
        """Fit a model to ascending rows and their log_ms (nan: failed), of which MIN_RESULTS are timed."""
        self.rows, self.log_ms = rows, log_ms - np.nanmin(log_ms)
        self._encoding = encoding
        fastest_first = np.argsort(self.log_ms, kind="stable")[: int((~np.isnan(log_ms)).sum())]
        chosen = training_sample(fastest_first, MAX_RESULTS, rng)
        known = self.log_ms[chosen]
        self._slowest, self._scale = known.max(), max(float(known.std()), 1e-3)
        self._positions = encoding.positions(rows[chosen])
        targets = (known - self._slowest) / self._scale
        prior = default_hyper_prior(len(encoding.axes))
        no_basis = np.empty((len(chosen), 0))
        self.kernel, _ = fit(Kernel(encoding.axes, prior.mean), prior, self._positions, targets, no_basis)
        covariance = self.kernel.covariance(self._positions, self._positions)
        covariance[np.diag_indices_from(covariance)] += self.kernel.noise
        self._solved = np.linalg.solve(covariance, targets)

    def predict(self, rows: Indices) -> tuple[Floats, NDArray[np.bool_]]:
        """Log times of candidates, and which of them failed on this source."""
        is_small = len(self._encoding.space) <= MAX_CANDIDATES  # then all rows are candidates
        predicted = self._of_all[rows] if is_small else self._expected(rows)
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        known = self.rows[at] == rows
        log_ms = np.where(known, self.log_ms[at], np.nan)
        ran = ~np.isnan(log_ms)
        return np.where(ran, log_ms, predicted), known & ~ran

    @cached_property
    def _of_all(self) -> Floats:
        return self._expected(slice(None))

    def _expected(self, rows: Indices | slice) -> Floats:
        covariance = self.kernel.covariance(self._encoding.positions(rows), self._positions)
        return np.asarray(self._slowest + self._scale * (covariance @ self._solved))


def results_in_space(space: Space, source: PriorResults) -> tuple[Indices, Floats]:
    """Rows of this space that a source has results for, ascending, with their log times (nan: failed)."""
    found: dict[int, float] = {}
    for config, time_ms in source.results:
        row = space.index(config)
        if row is not None:
            found.setdefault(row, math.nan if time_ms is None else math.log(max(time_ms, MIN_SCORE)))
    rows = sorted(found)
    return np.array(rows, dtype=np.intp), np.array([found[row] for row in rows])


def source_weight(here: DeviceInfo, there: Traits) -> float:
    """The weight of a source before any trial: how alike the two devices are."""
    traits = traits_of(here)
    if traits.vendor is None or traits.vendor != there.vendor:
        return LESS_WEIGHT**2
    return 1.0 if traits.architecture == there.architecture else LESS_WEIGHT
