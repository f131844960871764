"""The tier INTERPOLATED: chooses a variant of a sweep for sizes between the swept ones.

Variants were timed at the swept sizes and at some sizes half-way between. Between these, logarithms of
relative times are interpolated linearly over logarithms of sizes, in each dimension, and the variant with the
lowest result is served. A size does not count for a variant that is invalid there, or that has other launches
there than at the requested size: a reduction by one block, for example, is a single launch.
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

# At a half-way size, a valid variant without a time was far slower at the neighbouring sizes, or failed: it
# counts as this many times slower than the slowest timed variant.
UNTIMED = 1.2


class SizeRow(NamedTuple):
    """The times of configurations at one swept or half-way size, relative to the best one there."""

    sizes: Sizes
    relative_times: Mapping[Config, float]
    untimed: float = 1.0  # an untimed configuration counts as this many times slower than the slowest

    def cost(self, config: Config) -> float:
        """The logarithm of a configuration's slowdown."""
        time = self.relative_times.get(config)
        return log(time or self.untimed * max(self.relative_times.values(), default=1.0))

    def counts(self, config: Config, kernel: KernelOnDevice) -> bool:
        """True if the size says something about a configuration: it has a time or is valid there."""
        return config in self.relative_times or kernel.is_valid(config, self.sizes)


def rows_of(table: VariantTable, swept: Sequence[Entry]) -> list[SizeRow]:
    """The times of a table's configurations at the swept sizes with results, and half-way between them."""
    rows = [SizeRow(entry.sizes, entry.relative_times) for entry in swept]
    for sizes, times in table.halfway:
        timed = zip(table.configs, times, strict=True)
        rows.append(SizeRow(sizes, {config: time for config, time in timed if time is not None}, UNTIMED))
    return rows


def match_variants(
    folder: str, kernel: KernelOnDevice, entries: Sequence[Entry], query: Query
) -> Best | None:
    """The INTERPOLATED answer, if the query's sizes lie between swept sizes and a variant is valid for them.

    `entries` are the results with the query's element type and names of sizes, the nearest first.
    """
    sizes = query.sizes or {}
    if not Tier.INTERPOLATED.reaches(query.loosest):
        return None
    for table in kernel.record.variants:
        if table.dtype != kernel.dtype:
            continue
        swept = [entry for entry in entries if entry.sizes in table.sizes and entry.data == table.data]
        if not swept:  # a table from before a size was renamed
            continue
        for config in in_order(rows_of(table, swept), table.configs, sizes, kernel):
            entry = next((row for row in swept if config in row.relative_times), None)
            registers = next((row.registers for row in swept if row.config == config), None)
            if entry is None or kernel.check(config, sizes, registers).violations:
                continue
            variants = len(table.configs)
            among = f"one of {variants} variants" if variants > 1 else "the only variant"
            chosen = f"{among} for {len(table.sizes)} sizes, {entry.provenance.origin} on {folder}"
            near = f"{size_text(sizes)} lies between these sizes, nearest to {size_text(entry.sizes)}"
            detail = f"{chosen}; {near}{entry.caveat}"
            away = distance(entry.sizes, sizes)
            match = Match(Tier.INTERPOLATED, folder, entry.sizes, away, detail)
            stale = stale_reasons(entry, kernel.record, query.given)
            observed = [Slowdown(factor, True, Tier.INTERPOLATED) for factor in table.left_out]
            return Best(config, match, stale, kernel, entry, partial(tuple, observed))
    return None


def in_order(
    rows: Sequence[SizeRow], configs: Sequence[Config], sizes: Sizes, kernel: KernelOnDevice
) -> list[Config]:
    """The configurations by their interpolated time at these sizes, the fastest first.

    Empty if the sizes do not lie between the swept and half-way sizes of the rows.
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
