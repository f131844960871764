"""How results of other devices and sizes carry over: which configuration to take, and what it may cost.

Pure rules over tables of relative times. A column is one device's table for one problem: configurations it
has timed, each with its time over that of the device's best. What has not been timed on a device is
unknown there, and counts as the slowest configuration that has been: a portable configuration must have
been seen to be one, but a single gap does not rule it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop
from math import exp, log
from typing import NamedTuple

from autotune.core.records import Config, Entry, Sizes, Tier, distance
from autotune.hardware.names import Traits

COVERAGE = 0.9  # how often the true slowdown should lie below the expected one
MAX_BEYOND = 10.0  # a bound so many times the worst that was seen says that too little is known
MAX_STRETCH = 4.0
MIN_TOTAL = 1.1  # added to what was seen: a few cases without any slowdown do not promise another one

LOOSER = (
    1.5  # what closer matches cost, as a power: what it says of a looser one is less than it says of itself
)

Column = Mapping[Config, float]


class KnownDevice(NamedTuple):
    """A device with results of one kernel for one element type, none of them missing a size of another."""

    folder: str
    traits: Traits
    entries: tuple[Entry, ...]


class Slowdown(NamedTuple):
    """What a configuration cost where it had not been tuned; not `exact`: at least that much."""

    factor: float
    exact: bool
    tier: Tier


def nearest(entries: Sequence[Entry], sizes: Sizes) -> Entry:
    """The result for the nearest sizes, the first of equals."""
    return min(entries, key=lambda entry: distance(entry.sizes, sizes))


def scopes(traits: Traits, known: Sequence[KnownDevice]) -> Iterator[tuple[Tier, list[KnownDevice]]]:
    """The devices that each tier looks at for a device it has nothing of, closest tier first.

    What is not known of both, a vendor or an architecture, they have not in common.
    """
    alike = [one for one in known if traits.kind in (None, one.traits.kind)]
    related = [one for one in alike if traits.vendor and one.traits.vendor == traits.vendor]
    same = [one for one in related if traits.architecture and one.traits.architecture == traits.architecture]
    tiers = ((Tier.SAME_ARCHITECTURE, same), (Tier.SAME_VENDOR, related), (Tier.PORTABLE, alike))
    return ((tier, scope) for tier, scope in tiers if scope)


def ranked(columns: Sequence[Column]) -> Iterator[Config]:
    """Every configuration of the columns, the least worst relative time first.

    Equals are ordered by how few columns do not know them, then by the sum of their relative times, then
    by their place in the columns.
    """
    slowest = [max(column.values()) for column in columns]
    slowest_first = sorted(range(len(columns)), key=lambda number: -slowest[number])
    # By configuration: its worst known time, what it saves over the slowest ones, the columns as bits.
    found: dict[Config, tuple[float, float, int]] = {}
    for number, column in enumerate(columns):
        for config, factor in column.items():
            worst, saved, seen = found.get(config, (1.0, 0.0, 0))
            found[config] = max(worst, factor), saved + slowest[number] - factor, seen | 1 << number

    def cost(config: Config) -> tuple[float, int, float]:
        worst, saved, seen = found[config]
        gap = next((slowest[number] for number in slowest_first if not seen >> number & 1), 1.0)
        return max(worst, gap), -seen.bit_count(), -saved

    costs = [(cost(config), place, config) for place, config in enumerate(found)]
    heapify(costs)  # rarely is more than the first wanted
    while costs:
        yield heappop(costs)[2]


def columns(scope: Sequence[KnownDevice], sizes: Sizes) -> list[Column]:
    """What each device knows for the sizes nearest to those."""
    return [nearest(one.entries, sizes).relative_times for one in scope]


def across_devices(known: Sequence[KnownDevice], sizes: Sizes) -> list[Slowdown]:
    """What the choice of all others would have cost on each device, one device left out after the other."""
    observed = []
    for held in known:
        truth = nearest(held.entries, sizes)
        others = [one for one in known if one is not held]
        for tier, scope in scopes(held.traits, others):
            choice = next(ranked(columns(scope, truth.sizes)))
            observed.append(_seen(truth, choice, tier))
            break
    return observed


def across_sizes(entries: Sequence[Entry], reach: float) -> list[Slowdown]:
    """What the nearest other size's best would have cost for each size of a device.

    `reach` is the distance that is to be bridged: what was seen over a shorter one counts more in
    proportion, up to MAX_STRETCH times.
    """
    observed = []
    for truth in entries:
        others = [entry for entry in entries if entry.sizes != truth.sizes]
        if others:
            source = nearest(others, truth.sizes)
            seen = _seen(truth, source.config, Tier.NEAREST_SIZE)
            stretch = min(max(1.0, reach / distance(source.sizes, truth.sizes)), MAX_STRETCH)
            observed.append(seen._replace(factor=seen.factor**stretch))
    return observed


def of_default(known: Sequence[KnownDevice], sizes: Sizes) -> list[Slowdown]:
    """What the kernel's default costs on each device."""
    entries = [nearest(one.entries, sizes) for one in known]
    return [
        Slowdown(max(1.0, entry.default_time_ms / entry.time_ms), True, Tier.DEFAULT)
        for entry in entries
        if entry.default_time_ms is not None and entry.time_ms > 0
    ]


def expected_slowdown(observed: Sequence[Slowdown], tier: Tier) -> float | None:
    """The factor below which the true slowdown of a tier's answer should lie in COVERAGE of the cases.

    What the tier itself cost decides. Else looser tiers do, by the worst they cost, for a closer match
    should cost less; else closer ones, raised to LOOSER. None when nothing exact has been seen, or too little
    to say less than MAX_BEYOND times the worst of it.
    """
    own = [one for one in observed if one.tier is tier]
    looser = [one for one in observed if one.tier is not tier and tier.reaches(one.tier)]
    if any(one.exact for one in own):
        return _useful(_bound(own), own)
    if any(one.exact for one in looser):
        return max(one.factor for one in looser)
    if not any(one.exact for one in observed):
        return None
    return _useful(_bound(observed) * LOOSER, observed)


def _useful(log_bound: float, observed: Sequence[Slowdown]) -> float | None:
    """A bound's factor; None where it lies too far beyond all that was seen."""
    worst = max(one.factor for one in observed)
    return exp(log_bound) if log_bound <= log(MAX_BEYOND * worst) else None


def _bound(observed: Sequence[Slowdown]) -> float:
    """Prediction bound for the next of exponentially distributed logarithms, some known from below only.

    With r exact values, S the sum of all, the next exceeds S (p^(-1/r) - 1) with probability p. Source:
    Lawless, Statistical Models and Methods for Lifetime Data (2003), section 4.1: the next value's ratio
    to the total time on test has a Pareto distribution.
    """
    total = log(MIN_TOTAL) + sum(log(one.factor) for one in observed)
    exact = sum(one.exact for one in observed)
    return total * (float((1 - COVERAGE) ** (-1 / exact)) - 1)


def _seen(truth: Entry, choice: Config, tier: Tier) -> Slowdown:
    known = truth.relative_times
    exact = choice in known
    return Slowdown(known[choice] if exact else max(known.values()), exact, tier)
