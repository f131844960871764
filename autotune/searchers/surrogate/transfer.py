"""What other devices say of this space: their times as functions of a configuration, and where to begin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from autotune.searchers.base import SourceResults
from autotune.searchers.surrogate.candidate_set import Indices
from autotune.searchers.surrogate.encoding import Axis, Floats, Positions, positions_of
from autotune.searchers.surrogate.gaussian_process import HyperPrior, Kernel, fit, hyper_prior
from autotune.searchers.surrogate.history import MIN_SCORE
from autotune.space import Space
from autotune.space.enumeration import find_rows

MIN_RESULTS = 3  # results that a model of a device is made of
MAX_MODELLED = 400  # results that it is made of at most: half of them the fastest
KINDS = 3  # configurations of other devices that are tried before there is a model
COVERED = 0.97  # a device is served when a proposal reaches this share of its best
SCALE_SAMPLE = 2000  # rows by which devices are put on one scale
FAST = 0.1  # the share of each device's fastest configurations, where devices are compared
MIN_SHARED, MAX_SHARED = 20, 240  # configurations that two devices are compared on
MIN_NOISE_SHARE = 1e-3
TRUST_IN_FAILURES = 0.3  # probability to fail here of what failed everywhere else


class SourceModel:
    """One other device or problem: the times it is known to have, and a model of the others."""

    def __init__(
        self, space: Space, axes: tuple[Axis, ...], rows: Indices, log_ms: Floats, rng: np.random.Generator
    ) -> None:
        """Of ascending rows and their log_ms, nan for failures; at least MIN_RESULTS have a time."""
        self.rows, self.log_ms = rows, log_ms
        timed = np.flatnonzero(~np.isnan(log_ms))
        self.best = float(log_ms[timed].min())
        chosen = _informative(timed[np.argsort(log_ms[timed], kind="stable")], rng)
        self._centre, self._scale = log_ms[chosen].mean(), max(float(log_ms[chosen].std()), 1e-3)
        self._positions = positions_of(space.rows[rows[chosen]], axes)
        targets = (log_ms[chosen] - self._centre) / self._scale
        nothing = np.empty((len(chosen), 0))
        before = hyper_prior(len(axes))
        self.kernel, _ = fit(Kernel(axes, before.mean), before, self._positions, targets, nothing)
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
class TransferPrediction:
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
    before: HyperPrior

    def without_times(self) -> TransferPrediction:
        """The same as if the other devices' times were not known."""
        count = len(self.mean)
        before = hyper_prior((len(self.before.mean) - 2 - self.functions.shape[1]) // 2)
        return replace(self, functions=np.empty((count, 0)), mean=np.zeros(count), before=before)


class TransferModel:
    """The other devices of a search."""

    def __init__(
        self, space: Space, axes: tuple[Axis, ...], priors: Sequence[SourceResults], rng: np.random.Generator
    ) -> None:
        self._space = space
        self._axes = axes
        self.devices: list[SourceModel] = []
        self.bare_bests: list[int] = []  # of sources with too few results for a model
        for prior in priors:
            rows, log_ms = _known(space, prior)
            timed = int((~np.isnan(log_ms)).sum())
            if timed >= MIN_RESULTS:
                self.devices.append(SourceModel(space, axes, rows, log_ms, rng))
            elif timed:
                self.bare_bests.append(int(rows[np.nanargmin(log_ms)]))
        self._scale, self._centres, self._best = 1.0, np.zeros(0), np.zeros(0)
        if self.devices:
            sample = np.unique(rng.integers(0, len(space), SCALE_SAMPLE))
            log_ms = self._log_ms(sample)
            self._scale = max(float(log_ms.std(axis=0).mean()), 1e-3)
            self._centres = log_ms.mean(axis=0)
            self._best = np.array([device.best for device in self.devices])
        self._before = self._hyper_prior(rng)

    def rows(self, count: int) -> Indices:
        """The fastest known rows of every device, `count` in all."""
        each = math.ceil(count / max(1, len(self.devices)))
        best = [device.rows[np.argsort(device.log_ms, kind="stable")[:each]] for device in self.devices]
        return np.unique(np.concatenate(best)) if best else np.empty(0, dtype=np.intp)

    def predict(self, rows: Indices, positions: Positions) -> TransferPrediction:
        """What they say of these candidates."""
        if not self.devices:
            zeros = np.zeros(len(rows))
            none = np.empty((len(rows), 0))
            return TransferPrediction(1.0, none, zeros, none, zeros > 0, zeros, self._before)
        expected = [device.expect(rows, positions) for device in self.devices]
        log_ms = np.column_stack([times for times, _, _ in expected])
        functions = (log_ms - self._centres) / self._scale
        return TransferPrediction(
            scale=self._scale,
            functions=functions,
            mean=functions.mean(axis=1),
            share=np.exp(np.minimum(self._best - log_ms, 0.0)),
            observed=np.any([runs for _, runs, _ in expected], axis=0),
            failing=TRUST_IN_FAILURES * np.mean([failed for _, _, failed in expected], axis=0),
            before=self._before,
        )

    def _log_ms(self, rows: Indices) -> Floats:
        positions = positions_of(self._space.rows[rows], self._axes)
        return np.column_stack([device.expect(rows, positions)[0] for device in self.devices])

    def _hyper_prior(self, rng: np.random.Generator) -> HyperPrior:
        """How this device may differ: as much as each of the others differs from the rest of them.

        With a single one, its times tell along which axes differences are to be expected, not how large.
        """
        count, others = len(self._axes), len(self.devices)
        plain = hyper_prior(count, others)
        if not others:
            return plain
        mean, spread = plain.mean.copy(), plain.spread.copy()
        mean[0], spread[0] = 2 * math.log(0.5), 1.0
        alike = np.mean([device.kernel.values for device in self.devices], axis=0)
        mean[2 : 2 + 2 * count] = alike[2 : 2 + 2 * count]
        before = replace(plain, mean=mean, spread=spread)
        lessons = [
            lesson
            for left_out in range(others)
            if (lesson := self._leave_one_out(left_out, before, rng)) is not None
        ]
        if lessons:
            learnt = np.mean(lessons, axis=0)
            learnt[:2] = np.maximum(
                learnt[:2], [mean[0], math.log(MIN_NOISE_SHARE)]
            )  # all may differ from the next
            mean = np.concatenate([learnt[: 2 + 2 * count], np.full(others, learnt[2 + 2 * count :].mean())])
        return replace(before, mean=mean)

    def _leave_one_out(self, left_out: int, before: HyperPrior, rng: np.random.Generator) -> Floats | None:
        """Hyperparameters of the difference between one device and the others, among fast configurations."""
        if len(self.devices) < 2:
            return None
        device = self.devices[left_out]
        rows = device.rows[~np.isnan(device.log_ms)]
        functions = (self._log_ms(rows) - self._centres) / self._scale
        fast = functions <= np.quantile(functions, FAST, axis=0)
        chosen = np.flatnonzero(fast.any(axis=1))
        if len(chosen) < MIN_SHARED:
            return None
        chosen = rng.choice(chosen, min(len(chosen), MAX_SHARED), replace=False)
        others = np.delete(functions[chosen], left_out, axis=1)
        targets = functions[chosen, left_out] - others.mean(axis=1)
        own = replace(before, mean=before.mean[:-1], spread=before.spread[:-1])
        positions = positions_of(self._space.rows[rows[chosen]], self._axes)
        return fit(Kernel(self._axes, own.mean), own, positions, targets - targets.mean(), others)[0].values


def portfolio(foresight: TransferPrediction, axes: tuple[Axis, ...], positions: Positions) -> list[int]:
    """Candidates to begin with, the most useful one first: every device's best, then their next best kinds.

    First those by which every device is served by its best or nearly, each the one that adds most to the
    mean over devices of the best share so far (greedy coverage). Then, the devices in turns, what is fast
    and unlike all before it: the share times the variance that the others leave unexplained.
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
    kernel = Kernel(axes, foresight.before.mean)
    for device in cycle(range(len(served))):
        if len(chosen) >= min(KINDS, len(usable)):
            break
        alike = kernel.covariance(positions, positions[chosen]).max(axis=1) / kernel.variance
        gain = foresight.share[:, device] * usable * (1.0 - alike**2)
        gain[chosen] = -1.0
        chosen.append(int(np.argmax(gain)))
    return chosen


def _known(space: Space, prior: SourceResults) -> tuple[Indices, Floats]:
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
            log_ms.append(math.nan if time_ms is None else math.log(max(time_ms, MIN_SCORE)))
    if not asked:
        return np.empty(0, dtype=np.intp), np.empty(0)
    rows = find_rows(space.rows, np.array(asked))
    rows, first = np.unique(rows, return_index=True)
    valid = rows >= 0
    return rows[valid], np.array(log_ms)[first][valid]


def _informative(fastest_first: Indices, rng: np.random.Generator) -> Indices:
    """All of them, or of many the fastest and a sample of the others."""
    if len(fastest_first) <= MAX_MODELLED:
        return fastest_first
    half = MAX_MODELLED // 2
    return np.concatenate([fastest_first[:half], rng.choice(fastest_first[half:], half, replace=False)])
