"""What other devices say of this space: their times as functions of a configuration, and where to begin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from autotune.searchers.base import Prior
from autotune.searchers.surrogate.encoding import Axis, Floats, Positions, positions_of
from autotune.searchers.surrogate.kernel import Belief, Kernel, belief, fit
from autotune.searchers.surrogate.observations import SMALLEST_SCORE
from autotune.searchers.surrogate.pool import Indices
from autotune.space import Space
from autotune.space.enumeration import find_rows

FEWEST = 3  # results that a model of a device is made of
MOST_MODELLED = 400  # results that it is made of at most: half of them the fastest
COVERED = 0.97  # a device is served when a proposal reaches this share of its best
TRUST_IN_FAILURES = 0.3  # probability to fail here of what failed everywhere else


class Elsewhere:
    """One other device or problem: the times it is known to have, and a model of the others."""

    def __init__(
        self, space: Space, axes: tuple[Axis, ...], rows: Indices, log_ms: Floats, rng: np.random.Generator
    ) -> None:
        """Of ascending rows and their log_ms, nan for failures; at least FEWEST have a time."""
        self.rows, self.log_ms = rows, log_ms
        timed = np.flatnonzero(~np.isnan(log_ms))
        self.best = float(log_ms[timed].min())
        chosen = _informative(timed[np.argsort(log_ms[timed], kind="stable")], rng)
        self._centre, self._scale = log_ms[chosen].mean(), max(float(log_ms[chosen].std()), 1e-3)
        self._positions = positions_of(space.rows[rows[chosen]], axes)
        targets = (log_ms[chosen] - self._centre) / self._scale
        nothing = np.empty((len(chosen), 0))
        before = belief(len(axes))
        self.kernel = fit(Kernel(axes, before.mean), before, self._positions, targets, nothing)
        among = self.kernel.covariance(self._positions, self._positions)
        among[np.diag_indices_from(among)] += self.kernel.noise
        self._solved = np.linalg.solve(among, targets)

    def expect(self, rows: Indices, positions: Positions) -> tuple[Floats, NDArray[np.bool_], Floats]:
        """For candidates: log times, which of them are known to run there, and 1 where they failed there."""
        expected = self._centre + self._scale * (
            self.kernel.covariance(positions, self._positions) @ self._solved
        )
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        found = np.where(self.rows[at] == rows, self.log_ms[at], np.nan)
        asked = self.rows[at] == rows
        runs = ~np.isnan(found)
        return np.where(runs, found, expected), runs, (asked & ~runs).astype(float)


@dataclass(frozen=True, eq=False)
class Foresight:
    """What the other devices say of some candidates; all zeros and no functions where there are none.

    `functions` (candidates, devices): each device's log times, centred, on one common scale; `mean`: their
    mean; `share` (candidates, devices): a device's best time over the candidate's; `observed`: where at
    least one device ran it; `failing`: probability to fail as far as they tell.
    """

    scale: float
    functions: Floats
    mean: Floats
    share: Floats
    observed: NDArray[np.bool_]
    failing: Floats
    before: Belief


class Knowledge:
    """The other devices of a search."""

    def __init__(
        self, space: Space, axes: tuple[Axis, ...], priors: Sequence[Prior], rng: np.random.Generator
    ) -> None:
        self._axes = axes
        self.devices: list[Elsewhere] = []
        for prior in priors:
            rows, log_ms = _known(space, prior)
            if (~np.isnan(log_ms)).sum() >= FEWEST:
                self.devices.append(Elsewhere(space, axes, rows, log_ms, rng))

    def rows(self, count: int) -> Indices:
        """The fastest known rows of every device, `count` in all."""
        each = math.ceil(count / max(1, len(self.devices)))
        best = [device.rows[np.argsort(device.log_ms, kind="stable")[:each]] for device in self.devices]
        return np.unique(np.concatenate(best)) if best else np.empty(0, dtype=np.intp)

    def foresee(self, rows: Indices, positions: Positions) -> Foresight:
        """What they say of these candidates."""
        if not self.devices:
            zeros = np.zeros(len(rows))
            none = np.empty((len(rows), 0))
            return Foresight(1.0, none, zeros, none, zeros > 0, zeros, belief(len(self._axes)))
        expected = [device.expect(rows, positions) for device in self.devices]
        log_ms = np.column_stack([times for times, _, _ in expected])
        best = np.array([device.best for device in self.devices])
        scale = max(float(log_ms.std(axis=0).mean()), 1e-3)
        functions = (log_ms - log_ms.mean(axis=0)) / scale
        return Foresight(
            scale=scale,
            functions=functions,
            mean=functions.mean(axis=1),
            share=np.exp(np.minimum(best - log_ms, 0.0)),
            observed=np.any([runs for _, runs, _ in expected], axis=0),
            failing=TRUST_IN_FAILURES * np.mean([failed for _, _, failed in expected], axis=0),
            before=self._before(),
        )

    def _before(self) -> Belief:
        """The difference between devices is expected to vary along the axes as their times do."""
        count = len(self._axes)
        before = belief(count, len(self.devices))
        mean = before.mean.copy()
        mean[0] = 2 * math.log(0.5)
        alike = np.mean([device.kernel.values for device in self.devices], axis=0)
        mean[2 : 2 + 2 * count] = alike[2 : 2 + 2 * count]
        spread = before.spread.copy()
        spread[0] = 1.0
        return replace(before, mean=mean, spread=spread)


def portfolio(foresight: Foresight) -> list[int]:
    """Candidates by which every device is served by its best, or nearly: the most useful one first.

    Each is the one that adds most to the mean over devices of the best share so far (greedy coverage).
    """
    served = np.zeros(foresight.share.shape[1])
    usable = np.where(foresight.observed, 1.0 - foresight.failing, 0.0)
    chosen: list[int] = []
    while len(chosen) < len(served) and served.min(initial=1.0) < COVERED:
        gain = np.maximum(foresight.share, served).mean(axis=1) * usable
        gain += 1e-3 * foresight.share.mean(axis=1)
        gain[chosen] = -1.0
        best = int(np.argmax(gain))
        chosen.append(best)
        served = np.maximum(served, foresight.share[best])
    return chosen


def _known(space: Space, prior: Prior) -> tuple[Indices, Floats]:
    """The rows of a prior that are configurations of this space, ascending, with the log of their times."""
    places = [{value: place for place, value in enumerate(p.values)} for p in space.parameters]
    names = [parameter.name for parameter in space.parameters]
    asked, log_ms = [], []
    for config, time_ms in prior.results:
        if config.keys() != set(names):
            continue
        found = [place.get(config[name]) for name, place in zip(names, places, strict=True)]
        if None not in found:
            asked.append(found)
            log_ms.append(math.nan if time_ms is None else math.log(max(time_ms, SMALLEST_SCORE)))
    if not asked:
        return np.empty(0, dtype=np.intp), np.empty(0)
    rows = find_rows(space.rows, np.array(asked))
    rows, first = np.unique(rows, return_index=True)
    valid = rows >= 0
    return rows[valid], np.array(log_ms)[first][valid]


def _informative(fastest_first: Indices, rng: np.random.Generator) -> Indices:
    """All of them, or of many the fastest and a sample of the others."""
    if len(fastest_first) <= MOST_MODELLED:
        return fastest_first
    half = MOST_MODELLED // 2
    return np.concatenate([fastest_first[:half], rng.choice(fastest_first[half:], half, replace=False)])
