"""Few-shot search: find a good configuration within some ten runs, from results of other devices or sizes.

The model: a configuration takes as long here as on one of the sources, times a constant factor, times a
deviation that is similar for similar configurations. Which source that is, is unknown: all are weighted by
their likelihood. How large deviations are, and which parameters cause them, is estimated from how the sources
differ from each other. Each run tries the configuration with the greatest expected improvement among the
sources' local optima and the neighbours of the best so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from autotune.searchers.base import PriorResults, TrialStream, evaluate
from autotune.searchers.surrogate.encoding import Axis, Encoding, Floats, Indices, Positions
from autotune.searchers.surrogate.history import History
from autotune.searchers.surrogate.model import log_expected_improvement
from autotune.searchers.surrogate.transfer import results_in_space, source_weight
from autotune.searchers.whole_space import RandomSearch
from autotune.space import ValidSpace

MAX_BESTS = 4  # sources whose best is always tried
MAX_OPTIMA = 8  # local optima of a source
MAX_FASTEST = 2000  # configurations of a source among which local optima are searched
NEIGHBOUR_CHANGES = 2  # parameters in which a neighbour of the best differs at most
MAX_COMPARED = 60  # fastest configurations of each source that sources are compared on
MIN_COMPARED = 8  # configurations that two sources must share to be compared
DEFAULT_SPREAD = 0.3  # of log times between two devices, where no sources can be compared
MIN_SPREAD = 0.05
NOISE = 0.02  # of log times
RATES = (0.02, 3.0)  # bounds of a parameter's correlation decay, from hardly any to immediate
PRIOR_SUCCESSES = 0.5  # successful runs of similar configurations that are assumed in addition


class AdoptionSearch:
    """Starts from the best of other devices and learns from what it measures; ignores the seed."""

    def __init__(self, priors: Iterable[PriorResults] = ()) -> None:
        self._priors = tuple(priors)

    def search(self, space: ValidSpace, stream: TrialStream, *, seed: int) -> None:
        """Propose one configuration at a time until NoMoreTrials; without prior results, search at random."""
        sources = [_Source(space, results) for results in self._priors]
        sources = [source for source in sources if len(source.fastest)]
        if sources:
            _Adoption(space, stream, sources).search()
        else:
            RandomSearch().search(space, stream, seed=seed)


class _Source:
    """The results of one source by row; `log` is the logarithm of the time relative to the best, else nan."""

    def __init__(self, space: ValidSpace, results: PriorResults) -> None:
        self.weight = source_weight(space.device, results.traits)
        self.log = np.full(len(space), np.nan)
        self.failed = np.zeros(len(space), dtype=bool)
        rows, log_ms = results_in_space(space, results)
        self.log[rows], self.failed[rows] = log_ms, np.isnan(log_ms)
        timed = np.flatnonzero(~np.isnan(self.log))
        self.fastest = timed[np.argsort(self.log[timed], kind="stable")]
        self.log -= self.log[self.fastest[:1]].sum()

    @property
    def complete_log(self) -> Floats:
        """`log`, with the slowest known time in place of unknown ones."""
        return np.where(np.isnan(self.log), np.nanmax(self.log), self.log)

    def local_optima(self, positions: Positions) -> list[int]:
        """Rows from which no faster row differs in a single parameter, fastest first."""
        fastest = self.fastest[:MAX_FASTEST]
        among = positions[fastest]
        optima: list[int] = []
        for place, row in enumerate(fastest):
            if len(optima) == MAX_OPTIMA:
                break
            if not ((among[:place] != among[place]).sum(axis=1) <= 1).any():
                optima.append(int(row))
        return optima


@dataclass(frozen=True, eq=False)
class _Difference:
    """The difference of two devices' log times: its variance, and the correlation's decay by parameter."""

    variance: float
    rates: Floats

    def covariance(self, axes: Sequence[Axis], positions: Positions, place: Positions) -> Floats:
        """Covariance of the difference at every position with the difference at `place`."""
        distances = [  # half for being different at all, half by distance
            0.5 * (axis.distances[at][column] + (column != at))
            for axis, column, at in zip(axes, positions.T, place, strict=True)
        ]
        return np.asarray(self.variance * np.exp(-(self.rates @ np.array(distances).reshape(len(axes), -1))))


class _Adoption:
    def __init__(self, space: ValidSpace, stream: TrialStream, sources: list[_Source]) -> None:
        self._space, self._stream = space, stream
        encoding = Encoding(space)
        self._axes, self._positions = encoding.axes, encoding.positions(slice(None))
        sources = sorted(sources, key=lambda source: -source.weight)
        self._weights = np.array([source.weight for source in sources])
        self._weights /= self._weights.sum()
        self._source_logs = np.column_stack([source.complete_log for source in sources])
        self._success = 1.0 - np.column_stack([source.failed for source in sources]) @ self._weights
        self._optima = [source.local_optima(self._positions) for source in sources]
        self._difference = _estimate_difference(sources, self._optima, self._positions)
        self._history = History()
        self._covariances: list[Floats] = []  # of all rows with each configuration that was tried
        self._left = np.ones(len(space), dtype=bool)

    def search(self) -> None:
        """Search until everything was tried, or NoMoreTrials is raised."""
        for optima in self._optima[:MAX_BESTS]:
            if self._left[optima[0]]:
                self._try(optima[0])
        while self._left.any():
            candidates = self._candidates()
            self._try(int(candidates[np.argmax(self._expected_improvement(candidates))]))

    def _try(self, row: int) -> None:
        self._history.add([row], evaluate(self._stream, [self._space.config(row)]))
        self._left[row] = False
        covariance = self._difference.covariance(self._axes, self._positions, self._positions[row])
        self._covariances.append(covariance)

    def _candidates(self) -> Indices:
        """Untried local optima and neighbours of the best; if there are none, all untried rows."""
        chosen = np.zeros(len(self._left), dtype=bool)
        chosen[np.concatenate(self._optima)] = True
        if not self._history.failed.all():
            best = self._positions[self._history.rows[np.nanargmin(self._history.log_score)]]
            chosen |= (self._positions != best).sum(axis=1) <= NEIGHBOUR_CHANGES
        rows = np.flatnonzero(chosen & self._left)
        return rows if len(rows) else np.flatnonzero(self._left)

    def _expected_improvement(self, candidates: Indices) -> Floats:
        """Expected improvement of each candidate, averaged over the sources by their likelihood."""
        covariances = np.column_stack(self._covariances)
        failed = self._history.failed
        success = self._success[candidates] * (1.0 - self._failure(covariances[candidates], failed))
        if failed.all():
            return np.asarray(success * np.exp(-(self._source_logs[candidates] @ self._weights)))
        rows, log_ms = self._history.rows[~failed], self._history.log_score[~failed]
        covariances = covariances[:, ~failed]
        among = covariances[rows] + NOISE**2 * np.eye(len(rows))
        weights = np.linalg.solve(among, covariances[candidates].T)
        of_ones = np.linalg.solve(among, np.ones(len(rows)))
        # the constant factor is unknown: ordinary kriging, Cressie, Statistics for Spatial Data (1993), 3.2
        uncertain = 1.0 - covariances[candidates] @ of_ones
        variance = self._difference.variance - (covariances[candidates].T * weights).sum(axis=0)
        variance += uncertain**2 / of_ones.sum()
        deviation = np.sqrt(np.maximum(variance, 1e-9))
        improvements, log_likelihoods = [], []
        for source_log in self._source_logs.T:
            residual = log_ms - source_log[rows]
            log_factor = float(of_ones @ residual) / of_ones.sum()
            residual = residual - log_factor
            mean = source_log[candidates] + log_factor + weights.T @ residual
            improvements.append(np.exp(log_expected_improvement(log_ms.min(), mean, deviation)))
            log_likelihoods.append(-0.5 * float(residual @ np.linalg.solve(among, residual)))
        likely = self._weights * np.exp(np.array(log_likelihoods) - max(log_likelihoods))
        return np.asarray((likely / likely.sum()) @ np.array(improvements) * success)

    def _failure(self, covariances: Floats, failed: NDArray[np.bool_]) -> Floats:
        """Probability of failure, from the outcomes of similar configurations; 0 without similar ones."""
        correlation = covariances / self._difference.variance
        return np.asarray(correlation[:, failed].sum(axis=1) / (correlation.sum(axis=1) + PRIOR_SUCCESSES))


def _estimate_difference(
    sources: Sequence[_Source], optima: Sequence[list[int]], positions: Positions
) -> _Difference:
    """Estimate how devices differ from pairs of sources; if these share too little, from how each varies."""
    fast = [source.fastest[:MAX_COMPARED] for source in sources]
    at = np.unique(np.concatenate([*fast, *(np.array(rows) for rows in optima)]))
    pairs = [source.log - other.log for source, other in combinations(sources, 2)]
    pairs = [log for log in pairs if (~np.isnan(log[at])).sum() >= MIN_COMPARED]
    if pairs:
        return _variogram(pairs, at, positions, MIN_SPREAD)
    return _variogram([source.log for source in sources], at, positions, DEFAULT_SPREAD)


def _variogram(logs: Sequence[Floats], at: Indices, positions: Positions, min_spread: float) -> _Difference:
    """Variance and decay rates from pairs of configurations that differ in one parameter only.

    Source: Matheron, Principles of geostatistics, Economic Geology 58 (1963).
    """
    variance = max(float(np.mean([np.nanvar(log[at]) for log in logs])), min_spread**2)
    total, count = np.zeros(positions.shape[1]), np.zeros(positions.shape[1])
    for log in logs:
        for squares, axes in _single_changes(log, at, positions):
            # a variogram needs no more than half of four variances: limits the effect of outliers
            total += np.bincount(axes, np.minimum(squares, 4 * variance) / 2, len(total))
            count += np.bincount(axes, minlength=len(total))
    seen = count > 0
    share = np.where(seen, total / np.maximum(count, 1), 0.0) / variance
    share[~seen] = share[seen].mean() if seen.any() else DEFAULT_SPREAD
    return _Difference(variance, np.clip(-np.log(np.maximum(1 - share, 1e-3)), *RATES))


def _single_changes(log: Floats, at: Indices, positions: Positions) -> Iterator[tuple[Floats, Indices]]:
    """For each known row of `at`, squared differences to rows one parameter away, and that parameter."""
    rows = np.flatnonzero(~np.isnan(log))
    among = positions[rows]
    for row in at[~np.isnan(log[at])]:
        differs = among != positions[row]
        nearest = np.flatnonzero(differs.sum(axis=1) == 1)
        yield (log[rows[nearest]] - log[row]) ** 2, differs[nearest].argmax(axis=1)
