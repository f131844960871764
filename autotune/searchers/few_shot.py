"""A good configuration within a few runs, of a space that was searched on other devices or for other sizes.

This device is taken to resemble one of the known ones, nobody knows which: its times are that device's, by a
constant factor, and a difference that is alike for like configurations. How large differences are, and which
parameters cause them, is what the known devices differ by among themselves. Each run is the one that promises
most: another device's best of its kind, or a relative of what is best here so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from autotune.core.records import DeviceInfo
from autotune.hardware.names import Traits, traits_of
from autotune.searchers.base import Evaluate, SourceResults
from autotune.searchers.random_search import RandomSearch
from autotune.searchers.surrogate.encoding import Axis, Floats, Positions, axes_of, positions_of
from autotune.searchers.surrogate.history import History
from autotune.searchers.surrogate.model import log_expected_improvement
from autotune.space import Space

LESS_TRUST = 0.25  # in a device of another architecture, and once more in one of another vendor
OPENING = 4  # devices whose best is tried in any case
KINDS = 8  # of a device: each is the best among all that differ from it in one parameter
FASTEST = 2000  # of a device, that kinds are looked for among
RELATIVES = 2  # parameters in which a relative of the best differs at most
COMPARED = 60  # of each device's fastest, that devices are compared by
MIN_COMPARED = 8  # configurations that two devices are compared by
USUAL_SPREAD = 0.3  # of log times between two devices, where nothing can be compared
MIN_SPREAD = 0.05
NOISE = 0.02  # of log times
RATES = (0.02, 3.0)  # how fast likeness decays along a parameter, from hardly at all to at once

BENEFIT_OF_DOUBT = 0.5  # counts as so many that work and are alike

Rows = NDArray[np.intp]


class AdoptionSearch:
    """Starts from the best of other devices and corrects on what it sees; the seed plays no part."""

    def __init__(self, priors: Sequence[SourceResults] = ()) -> None:
        self._priors = tuple(priors)

    def search(self, space: Space, evaluate: Evaluate, *, seed: int) -> None:
        """Propose one at a time until BudgetSpent is raised; a random search where nothing is known."""
        known = [_SourceDevice(space, prior) for prior in self._priors]
        known = [one for one in known if len(one.fastest)]
        if known:
            _Course(space, evaluate, known).run()
        else:
            RandomSearch().search(space, evaluate, seed=seed)


class _SourceDevice:
    """What is known of one device: the log of each row's time over its best's, nan where there is none."""

    def __init__(self, space: Space, prior: SourceResults) -> None:
        self.trust = _trust(space.device, prior.traits)
        self.log = np.full(len(space), np.nan)
        self.failed = np.zeros(len(space), dtype=bool)
        for config, time_ms in prior.results:
            row = space.index(config)
            if row is not None and time_ms is not None and time_ms > 0:
                self.log[row] = np.log(time_ms)
            elif row is not None:
                self.failed[row] = True
        timed = np.flatnonzero(~np.isnan(self.log))
        self.fastest = timed[np.argsort(self.log[timed], kind="stable")]
        self.log -= self.log[self.fastest[:1]].sum()

    @property
    def guess(self) -> Floats:
        """The same with the slowest time in the place of those that are not known."""
        return np.where(np.isnan(self.log), np.nanmax(self.log), self.log)

    def kinds(self, positions: Positions) -> list[int]:
        """Rows such that no faster one differs in a single parameter, fastest first."""
        found: list[int] = []
        among = positions[self.fastest[:FASTEST]]
        for place, row in enumerate(self.fastest[:FASTEST]):
            if len(found) == KINDS:
                break
            if not ((among[:place] != among[place]).sum(axis=1) <= 1).any():
                found.append(int(row))
        return found


@dataclass(frozen=True, eq=False)
class _Difference:
    """How the log times of two devices differ: the variance, and how fast likeness decays by parameter."""

    variance: float
    rates: Floats

    def covariance(self, axes: Sequence[Axis], positions: Positions, place: Positions) -> Floats:
        """Of every position's difference with that of one; half of a distance is being different at all."""
        away = [
            0.5 * (axis.distances[at][column] + (column != at))
            for axis, column, at in zip(axes, positions.T, place, strict=True)
        ]
        return np.asarray(self.variance * np.exp(-(self.rates @ np.array(away).reshape(len(axes), -1))))


class _Course:
    """One search."""

    def __init__(self, space: Space, evaluate: Evaluate, known: list[_SourceDevice]) -> None:
        self._space, self._evaluate = space, evaluate
        self._axes = axes_of(space.parameters)
        self._positions = positions_of(space.rows, self._axes)
        self._known = sorted(known, key=lambda one: -one.trust)
        self._trust = np.array([one.trust for one in self._known])
        self._trust /= self._trust.sum()
        self._expected = np.column_stack([one.guess for one in self._known])
        self._works = 1.0 - np.column_stack([one.failed for one in self._known]) @ self._trust
        self._kinds = [one.kinds(self._positions) for one in self._known]
        self._difference = _difference(self._known, self._kinds, self._positions)
        self._seen = History()
        self._columns: list[Floats] = []  # covariances with each configuration that was tried
        self._left = np.ones(len(space), dtype=bool)

    def run(self) -> None:
        """Until everything was tried, or BudgetSpent is raised."""
        for kinds in self._kinds[:OPENING]:
            if self._left[kinds[0]]:
                self._try(kinds[0])
        while self._left.any():
            pool = self._candidates()
            self._try(int(pool[np.argmax(self._promise(pool))]))

    def _try(self, row: int) -> None:
        self._seen.add([row], self._evaluate([self._space.config(row)]))
        self._left[row] = False
        self._columns.append(self._difference.covariance(self._axes, self._positions, self._positions[row]))

    def _candidates(self) -> Rows:
        """The rows to choose from: kinds, and relatives of the best; without any, all that are left."""
        chosen = np.zeros(len(self._left), dtype=bool)
        chosen[np.concatenate(self._kinds)] = True
        if not self._seen.failed.all():
            best = self._positions[self._seen.rows[np.nanargmin(self._seen.log_ms)]]
            chosen |= (self._positions != best).sum(axis=1) <= RELATIVES
        rows = np.flatnonzero(chosen & self._left)
        return rows if len(rows) else np.flatnonzero(self._left)

    def _promise(self, pool: Rows) -> Floats:
        """Expected improvement of each, over all devices that this one may resemble, if it works."""
        columns = np.column_stack(self._columns)
        failed = self._seen.failed
        works = self._works[pool] * (1.0 - self._failing(columns[pool], failed))
        if failed.all():
            return np.asarray(works * np.exp(-(self._expected[pool] @ self._trust)))
        rows, log_ms, columns = self._seen.rows[~failed], self._seen.log_ms[~failed], columns[:, ~failed]
        among = columns[rows] + NOISE**2 * np.eye(len(rows))
        weights = np.linalg.solve(among, columns[pool].T)
        of_one = np.linalg.solve(among, np.ones(len(rows)))
        # the constant factor is unknown: ordinary kriging, Cressie, Statistics for Spatial Data (1993), 3.2
        uncertain = 1.0 - columns[pool] @ of_one
        variance = self._difference.variance - (columns[pool].T * weights).sum(axis=0)
        variance += uncertain**2 / of_one.sum()
        deviation = np.sqrt(np.maximum(variance, 1e-9))
        gains, evidence = [], []
        for expected in self._expected.T:
            residual = log_ms - expected[rows]
            factor = float(of_one @ residual) / of_one.sum()
            residual = residual - factor
            mean = expected[pool] + factor + weights.T @ residual
            gains.append(np.exp(log_expected_improvement(log_ms.min(), mean, deviation)))
            evidence.append(-0.5 * float(residual @ np.linalg.solve(among, residual)))
        likely = self._trust * np.exp(np.array(evidence) - max(evidence))
        return np.asarray((likely / likely.sum()) @ np.array(gains) * works)

    def _failing(self, columns: Floats, failed: NDArray[np.bool_]) -> Floats:
        """The chance to fail, by what became of those that are alike; of nothing alike it is none."""
        alike = columns / self._difference.variance
        return np.asarray(alike[:, failed].sum(axis=1) / (alike.sum(axis=1) + BENEFIT_OF_DOUBT))


def _trust(here: DeviceInfo, there: Traits) -> float:
    """How much a device counts before anything was tried."""
    traits = traits_of(here)
    if traits.vendor is None or traits.vendor != there.vendor:
        return LESS_TRUST**2
    return 1.0 if traits.architecture == there.architecture else LESS_TRUST


def _difference(
    known: Sequence[_SourceDevice], kinds: Sequence[list[int]], positions: Positions
) -> _Difference:
    """What pairs of known devices differ by; with too little in common, what single ones vary by.

    The variogram along each parameter, from pairs of configurations that differ in nothing else. Source:
    Matheron, Principles of geostatistics, Economic Geology 58 (1963).
    """
    fast = [one.fastest[:COMPARED] for one in known]
    at = np.unique(np.concatenate([*fast, *(np.array(rows) for rows in kinds)]))
    pairs = [one.log - other.log for one, other in combinations(known, 2)]
    pairs = [log for log in pairs if (~np.isnan(log[at])).sum() >= MIN_COMPARED]
    if pairs:
        return _variogram(pairs, at, positions, MIN_SPREAD)
    return _variogram([one.log for one in known], at, positions, USUAL_SPREAD)


def _variogram(logs: Sequence[Floats], at: Rows, positions: Positions, least: float) -> _Difference:
    variance = max(float(np.mean([np.nanvar(log[at]) for log in logs])), least**2)
    total, count = np.zeros(positions.shape[1]), np.zeros(positions.shape[1])
    for log in logs:
        for squares, axes in _steps(log, at, positions):
            # half of four variances is more than any variogram needs to have: an outlier is no rule
            total += np.bincount(axes, np.minimum(squares, 4 * variance) / 2, len(total))
            count += np.bincount(axes, minlength=len(total))
    seen = count > 0
    share = np.where(seen, total / np.maximum(count, 1), 0.0) / variance
    share[~seen] = share[seen].mean() if seen.any() else USUAL_SPREAD
    return _Difference(variance, np.clip(-np.log(np.maximum(1 - share, 1e-3)), *RATES))


def _steps(log: Floats, at: Rows, positions: Positions) -> Iterator[tuple[Floats, Rows]]:
    """For each row that is known, the squared differences to those one parameter away, and which it is."""
    rows = np.flatnonzero(~np.isnan(log))
    among = positions[rows]
    for row in at[~np.isnan(log[at])]:
        differs = among != positions[row]
        one = np.flatnonzero(differs.sum(axis=1) == 1)
        yield (log[rows[one]] - log[row]) ** 2, differs[one].argmax(axis=1)
