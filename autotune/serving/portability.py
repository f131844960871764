"""Portability of results to other devices and sizes: chooses a configuration, and bounds its slowdown.

A column is one device's table for one problem: configurations with their time relative to the device's best.
A configuration that a device has not timed counts as the slowest one that it has timed. So it must have been
measured to be portable, but one missing time does not rule it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop
from math import exp, inf, log
from typing import NamedTuple

from autotune.core.records import Config, Entry, Sizes, Tier, distance
from autotune.hardware.names import Traits

COVERAGE = 0.9  # share of cases in which the true slowdown should be below `slowdown_at_most`
MAX_BEYOND = 10.0  # a bound above this multiple of the worst known slowdown is not reported
MAX_STRETCH = 4.0  # largest power to which a slowdown over a shorter distance of sizes is raised
MIN_TOTAL = 1.1  # a slowdown that is added to the observed ones: a few cases without a slowdown prove little
LOOSER = 1.5  # power to which slowdowns of closer tiers are raised to estimate a looser tier's

Column = Mapping[Config, float]


class KnownDevice(NamedTuple):
    """A device with results of one kernel for one element type and the same names of sizes."""

    folder: str
    traits: Traits
    entries: tuple[Entry, ...]


class Slowdown(NamedTuple):
    """The slowdown of a configuration where it was not tuned; only a lower bound unless `exact`."""

    factor: float
    exact: bool
    tier: Tier


def nearest(entries: Sequence[Entry], sizes: Sizes) -> Entry:
    """The result for the nearest sizes; on a tie, the first."""
    return min(entries, key=lambda entry: distance(entry.sizes, sizes))


def scopes(traits: Traits, known: Sequence[KnownDevice]) -> Iterator[tuple[Tier, list[KnownDevice]]]:
    """The tiers for a device of these traits, closest first, each with the devices whose results it serves.

    An unknown vendor or architecture counts as different.
    """
    kind, vendor, architecture = traits.kind, traits.vendor, traits.architecture
    same_kind = [device for device in known if kind in (None, device.traits.kind)]
    same_vendor = [device for device in same_kind if vendor and device.traits.vendor == vendor]
    same_architecture = [
        device for device in same_vendor if architecture and device.traits.architecture == architecture
    ]
    tiers = (
        (Tier.SAME_ARCHITECTURE, same_architecture),
        (Tier.SAME_VENDOR, same_vendor),
        (Tier.PORTABLE, same_kind),
    )
    return ((tier, scope) for tier, scope in tiers if scope)


def ranked(columns: Sequence[Column]) -> Iterator[Config]:
    """Every configuration of the columns in minimax order: the lowest worst relative time first.

    Ties are broken by fewer missing times, then the lower sum of relative times, then position in the
    columns.
    """
    slowest = [max(column.values()) for column in columns]
    slowest_first = sorted(range(len(columns)), key=lambda number: -slowest[number])
    # By configuration: its worst known time, its savings over the slowest times, its columns as bits.
    scores: dict[Config, tuple[float, float, int]] = {}
    for number, column in enumerate(columns):
        for config, factor in column.items():
            worst, saved, seen = scores.get(config, (1.0, 0.0, 0))
            scores[config] = max(worst, factor), saved + slowest[number] - factor, seen | 1 << number

    def cost(config: Config) -> tuple[float, int, float]:
        worst, saved, seen = scores[config]
        gap = next((slowest[number] for number in slowest_first if not seen >> number & 1), 1.0)
        return max(worst, gap), -seen.bit_count(), -saved

    costs = [(cost(config), place, config) for place, config in enumerate(scores)]
    heapify(costs)  # callers rarely need more than the first
    while costs:
        yield heappop(costs)[2]


def columns_for(scope: Sequence[KnownDevice], sizes: Sizes) -> list[Column]:
    """The relative times of each device for its sizes nearest to these."""
    return [nearest(device.entries, sizes).relative_times for device in scope]


def best_place(columns: Sequence[Column], config: Config) -> int:
    """The number of the column in which a configuration is closest to the best; on a tie, the first."""
    factors = [column.get(config, inf) for column in columns]
    return factors.index(min(factors))


def across_devices(known: Sequence[KnownDevice], sizes: Sizes) -> list[Slowdown]:
    """Leave each device out in turn; return the slowdown there of what the other devices would serve."""
    observed = []
    for left_out in known:
        truth = nearest(left_out.entries, sizes)
        others = [device for device in known if device is not left_out]
        tier, scope = next(scopes(left_out.traits, others), (None, []))
        if tier:
            choice = next(ranked(columns_for(scope, truth.sizes)))
            observed.append(_observe(truth, choice, tier))
    return observed


def across_sizes(entries: Sequence[Entry], reach: float) -> list[Slowdown]:
    """Leave each size of a device out in turn; return the slowdown there of the nearest other size's best.

    `reach` is the distance from the served sizes to the requested ones. A slowdown over a shorter distance is
    raised to the power of their ratio, at most MAX_STRETCH.
    """
    observed = []
    for truth in entries:
        others = [entry for entry in entries if entry.sizes != truth.sizes]
        if others:
            source = nearest(others, truth.sizes)
            seen = _observe(truth, source.config, Tier.NEAREST_SIZE)
            stretch = min(max(1.0, reach / distance(source.sizes, truth.sizes)), MAX_STRETCH)
            observed.append(seen._replace(factor=seen.factor**stretch))
    return observed


def of_default(known: Sequence[KnownDevice], sizes: Sizes) -> list[Slowdown]:
    """The slowdown of the kernel's default on each device."""
    entries = [nearest(device.entries, sizes) for device in known]
    return [
        Slowdown(max(1.0, entry.default_time_ms / entry.time_ms), True, Tier.DEFAULT)
        for entry in entries
        if entry.default_time_ms is not None and entry.time_ms > 0
    ]


def foretold(observed: Sequence[Slowdown], tier: Tier) -> tuple[float | None, float | None]:
    """Two bounds of a tier's slowdown, which half and COVERAGE of the cases should not exceed.

    The bounds come from observations of this tier; else of looser tiers, because a closer match should cost
    less; else of closer tiers, raised to the power LOOSER. A bound is None without exact observations, or
    beyond MAX_BEYOND times the worst observation, where observations are too few.
    """
    own = [slowdown for slowdown in observed if slowdown.tier is tier]
    looser = [slowdown for slowdown in observed if slowdown.tier is not tier and tier.reaches(slowdown.tier)]
    if any(slowdown.exact for slowdown in own):
        known, power = own, 1.0
    elif any(slowdown.exact for slowdown in looser):
        from statistics import median  # its import takes longer than a look-up, which seldom needs it

        factors = [slowdown.factor for slowdown in looser]
        return median(factors), max(factors)
    elif any(slowdown.exact for slowdown in observed):
        known, power = [*observed], LOOSER
    else:
        return None, None
    return _useful(_bound(known, 0.5) * power, known), _useful(_bound(known, COVERAGE) * power, known)


def _useful(log_bound: float, observed: Sequence[Slowdown]) -> float | None:
    """The factor of a bound of logarithms; None if it lies too far beyond all observations."""
    worst = max(slowdown.factor for slowdown in observed)
    return exp(log_bound) if log_bound <= log(MAX_BEYOND * worst) else None


def _bound(observed: Sequence[Slowdown], share: float) -> float:
    """Prediction bound for the next of exponentially distributed logarithms, some of them lower bounds.

    With r exact values, S the sum of all, the next exceeds S (p^(-1/r) - 1) with probability p, which is
    1 - share. Source: Lawless, Statistical Models and Methods for Lifetime Data (2003), section 4.1: the next
    value's ratio to the total time on test has a Pareto distribution.
    """
    total = log(MIN_TOTAL) + sum(log(slowdown.factor) for slowdown in observed)
    exact = sum(slowdown.exact for slowdown in observed)
    return total * (float((1 - share) ** (-1 / exact)) - 1)


def _observe(truth: Entry, choice: Config, tier: Tier) -> Slowdown:
    known = truth.relative_times
    exact = choice in known
    return Slowdown(known[choice] if exact else max(known.values()), exact, tier)
