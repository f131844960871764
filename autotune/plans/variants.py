"""Chooses a few variants for a range of sizes, and estimates their loss at unmeasured sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, log

from autotune.core.records import Config, Sizes
from autotune.serving.interpolation import SizeRow, in_order
from autotune.serving.validity import KernelOnDevice

WORTH = 1.01  # a further variant must bring at least this speed-up at a size, or between two sizes


def cover(rows: Sequence[SizeRow], limit: int) -> list[Config]:
    """Choose at most `limit` configurations that together lose least over all sizes, the most useful first.

    Each step takes the configuration that lowers the sum of the logarithms of the slowdowns most, at the
    sizes and between neighbours, where both count half. A configuration without a time at a size counts as
    slower than the slowest one there. Source: the greedy algorithm for k-medians, Cornuejols, Fisher and
    Nemhauser, Management Science 23 (1977).
    """
    pairs = neighbours([row.sizes for row in rows])
    costs: dict[Config, list[float]] = {}
    for config in dict.fromkeys(config for row in rows for config in row.relative_times):
        at = [row.cost(config) + 2 * log(WORTH) * (config not in row.relative_times) for row in rows]
        costs[config] = [*at, *((at[low] + at[high]) / 2 for low, high in pairs)]
    chosen: list[Config] = []
    lowest = [max(cost) for cost in zip(*costs.values(), strict=True)]
    while costs and len(chosen) < limit:
        best = min(costs, key=lambda config: sum(map(min, lowest, costs[config])))
        gains = [before - now for before, now in zip(lowest, costs.pop(best), strict=True)]
        if chosen and max(gains) < log(WORTH):
            break
        chosen.append(best)
        lowest = [before - max(0.0, gain) for before, gain in zip(lowest, gains, strict=True)]
    return chosen


def neighbours(sizes: Sequence[Sizes]) -> list[tuple[int, int]]:
    """Pairs of sizes that differ in one dimension and have no other size between them."""
    pairs: list[tuple[int, int]] = []
    if not sizes:
        return pairs
    for name in sizes[0]:
        lines: dict[tuple[tuple[str, int], ...], list[int]] = {}
        for place in sorted(range(len(sizes)), key=lambda place: sizes[place][name]):
            others = {other: size for other, size in sizes[place].items() if other != name}
            lines.setdefault(tuple(others.items()), []).append(place)
        pairs += [pair for line in lines.values() for pair in pairwise(line)]
    return pairs


def left_out_slowdowns(
    swept: Sequence[SizeRow],
    halfway: Sequence[SizeRow],
    found_at: Mapping[Config, Sequence[Sizes]],
    limit: int,
    kernel: KernelOnDevice,
) -> tuple[float, ...]:
    """Leave each swept size out in turn; return the slowdown there of the variants from all others.

    The ends of the range stay in, because interpolation serves nothing beyond them. A candidate that only the
    left-out size proposed, by `found_at`, does not take part.
    """
    slowdowns = []
    for row in swept:
        rows_without = (
            SizeRow(
                kept.sizes,
                {c: t for c, t in kept.relative_times.items() if [*found_at.get(c, ())] != [row.sizes]},
            )
            for kept in (*swept, *halfway)
            if kept is not row
        )
        others = [other for other in rows_without if other.relative_times]
        served = in_order(others, cover(others, limit), row.sizes, kernel)
        if served:
            slowdowns.append(exp(row.cost(served[0])))
    return tuple(slowdowns)
