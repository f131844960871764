"""The tier INTERPOLATED: which variant of a sweep to serve between the sizes that were swept.

Logarithms of relative times are interpolated linearly over the logarithms of the sizes, in each dimension,
between the sizes at which the variants were timed: those that were swept, and some half-way between them.
The variant with the lowest one is served. A size does not count for a variant that is not valid there, or has
other launches than at the one that is asked for: a reduction by one block, for example, is a single launch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import partial
from math import log, log2, prod
from typing import NamedTuple

from autotune.core.records import Config, Entry, Match, Sizes, Tier, VariantTable, distance
from autotune.core.text import size_text
from autotune.serving.best import Best
from autotune.serving.portability import Slowdown
from autotune.serving.query import Query, stale_reasons
from autotune.serving.validity import KernelOnDevice

# Half-way, a variant that is valid and has no time counts as so many times as slow as the slowest that has
# one: it was far slower at the sizes beside, or failed.
UNTIMED = 1.2


class SizeRow(NamedTuple):
    """The times of configurations at one size that was swept, or half-way, relative to the best one there."""

    sizes: Sizes
    relative_times: Mapping[Config, float]
    untimed: float = 1.0  # what has no time counts as so many times as slow as the slowest that has one

    def cost(self, config: Config) -> float:
        """The logarithm of a configuration's slowdown."""
        time = self.relative_times.get(config)
        return log(time or self.untimed * max(self.relative_times.values(), default=1.0))

    def counts(self, config: Config, kernel: KernelOnDevice) -> bool:
        """Whether the size tells of a configuration: without a time, not if it is not valid there."""
        return config in self.relative_times or kernel.is_valid(config, self.sizes)


def rows_of(table: VariantTable, swept: Sequence[Entry]) -> list[SizeRow]:
    """The times of a table's configurations at the sizes that were swept, and half-way between these.

    Args:
        table: The table.
        swept: The results at its sizes, as far as there are any.
    """
    rows = [SizeRow(entry.sizes, entry.relative_times) for entry in swept]
    for sizes, times in table.halfway:
        timed = zip(table.configs, times, strict=True)
        rows.append(SizeRow(sizes, {config: time for config, time in timed if time is not None}, UNTIMED))
    return rows


def known_registers(config: Config, swept: Sequence[Entry]) -> int | None:
    """Registers per thread of a variant, as far as it is the best of a size that was swept."""
    return next((entry.registers for entry in swept if entry.config == config), None)


def match_variants(
    folder: str, kernel: KernelOnDevice, entries: Sequence[Entry], query: Query
) -> Best | None:
    """The INTERPOLATED answer, if the sizes lie between those of a sweep and a variant is valid for them.

    Args:
        folder: Of the device in its cache.
        kernel: The kernel with its results on the device.
        entries: Those for its element type and these names of sizes, the nearest first.
        query: What was asked for, with its sizes.
    """
    sizes = query.sizes or {}
    if not Tier.INTERPOLATED.reaches(query.least):
        return None
    for table in kernel.record.variants:
        if table.dtype != kernel.dtype:
            continue
        swept = [entry for entry in entries if entry.sizes in table.sizes and entry.data == table.data]
        if not swept:  # the table of a sweep from before a size was renamed
            continue
        for config in in_order(rows_of(table, swept), table.configs, sizes, kernel):
            entry = next((one for one in swept if config in one.relative_times), None)
            if entry is None or kernel.check(config, sizes, known_registers(config, swept)).violations:
                continue
            variants = len(table.configs)
            among = f"one of {variants} variants" if variants > 1 else "the only variant"
            chosen = f"{among} for {len(table.sizes)} sizes, {entry.provenance.origin} on {folder}"
            near = f"{size_text(sizes)} lies between them, the nearest is {size_text(entry.sizes)}"
            detail = f"{chosen}; {near}{entry.caveat}"
            away = distance(entry.sizes, sizes)
            match = Match(Tier.INTERPOLATED, folder, entry.sizes, away, detail)
            stale = stale_reasons(entry, kernel.record, query.given)
            observed = [Slowdown(factor, True, Tier.INTERPOLATED) for factor in table.left_out]
            return Best(config, match, stale, kernel, entry, partial(tuple, observed))
    return None


def in_order(
    rows: Sequence[SizeRow],
    configs: Sequence[Config],
    sizes: Sizes,
    kernel: KernelOnDevice,
) -> list[Config]:
    """The configurations by their interpolated time at these sizes, the fastest first.

    Args:
        rows: The swept sizes, and those half-way between them.
        configs: The variants.
        sizes: Where to interpolate.
        kernel: Tells where a configuration is valid, and which launches it has.

    Returns:
        An empty list if the sizes are not between the swept ones.
    """
    axes = {name: sorted({row.sizes[name] for row in rows}) for name in sizes}
    weights = [prod(_weight(axes[name], row.sizes[name], sizes[name]) for name in sizes) for row in rows]
    near = [(row, weight) for row, weight in zip(rows, weights, strict=True) if weight > 0]
    if not near:
        return []

    def cost(config: Config) -> float:
        here = kernel.launched(config, sizes)
        alike = [
            (row, weight)
            for row, weight in near
            if row.counts(config, kernel) and kernel.launched(config, row.sizes) == here
        ]
        used = alike or near
        return sum(weight * row.cost(config) for row, weight in used) / sum(weight for _, weight in used)

    return sorted(configs, key=cost)


def _weight(axis: Sequence[int], at: int, size: int) -> float:
    """The weight of a swept size in one dimension: 1 at the size, falling to 0 at its neighbours."""
    place = bisect_left(axis, size)
    if place == len(axis) or axis[place] == size:
        return float(at == size)
    low, high = axis[place - 1] if place else None, axis[place]
    if low is None or at not in (low, high):
        return 0.0
    share = (log2(size) - log2(low)) / (log2(high) - log2(low))
    return share if at == high else 1 - share
