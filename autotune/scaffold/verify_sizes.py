"""Choose the sizes to verify: 1, then those around the largest tiles, where a bounds check fails first."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import product
from math import prod

from autotune.core.expression_ops import round_up
from autotune.core.expressions import integer, parse
from autotune.core.records import Value
from autotune.errors import ExpressionError
from autotune.sources.facts import Facts

_BLOCKS = re.compile(r"ceil_div\((\w+), ((?:[^()]|\([^()]*\))*)\)")  # a size, and what a block covers
_LARGEST_BLOCK = 1024  # threads
_USUAL_TILE, _WHOLE_TILE = 32, 128  # of a size without a tile of its own; the second fills any block

_SHORT, _APART = 5, 14  # extents in the other order: 5, 19, 33


def is_checked(facts: Facts) -> bool:
    """True if a kernel seems to check bounds."""
    is_guarded = any(use.guards for use in facts.accesses)
    return bool(facts.compared or facts.loops) or is_guarded or "min" in facts.calls


def verify_sizes(
    names: Sequence[str],
    grid: Sequence[str],
    block: Sequence[str],
    values: Mapping[str, tuple[Value, ...]],
    *,
    checked: bool,
    unguarded: Collection[str] = (),
) -> tuple[tuple[int, ...], ...]:
    """Extents of each size, several times; those of one time differ, for equal ones hide swapped axes.

    One time has them in the other order: a wrong stride leaves an array only where that is the short one.
    Only extents that fill all blocks are chosen unless the bounds are `checked`, and for sizes that are
    `unguarded`.
    """
    tiles = _largest_tiles(grid, block, values)
    multiple_of = [tiles.get(name, _WHOLE_TILE) if name in unguarded else 1 for name in names]
    if not checked:
        whole = [tiles.get(name, _WHOLE_TILE) for name in names]
        return (_differing(whole, [0] * len(names), multiple_of),)
    chosen = [tiles.get(name, _USUAL_TILE) for name in names]
    edges = [[(time + number) % 3 - 1 for number in range(len(names))] for time in range(3)]
    around = [_differing(chosen, edge, multiple_of) for edge in edges]
    other = [_in_other_order(around[0], multiple_of)] if len(names) > 1 else []
    return tuple(multiple_of), *other, *around


def _in_other_order(extents: Sequence[int], steps: Sequence[int]) -> tuple[int, ...]:
    """Small extents of which the first is the longest where that of others is the shortest."""
    ranks = sorted(extents, reverse=True)
    short = (_SHORT + _APART * ranks.index(extent) for extent in extents)
    return tuple(map(round_up, short, steps))


def _differing(tiles: Sequence[int], edges: Sequence[int], steps: Sequence[int]) -> tuple[int, ...]:
    """For each size, a multiple of its tile, moved to its edge, that no other size has."""
    sizes_out: list[int] = []
    for tile, edge, step in zip(tiles, edges, steps, strict=True):
        extent = round_up(max(2 * tile + edge * step, 1), step)
        while extent in sizes_out:
            extent = round_up(extent + tile, step)
        sizes_out.append(extent)
    return tuple(sizes_out)


def _largest_tiles(
    grid: Sequence[str], block: Sequence[str], values: Mapping[str, tuple[Value, ...]]
) -> dict[str, int]:
    """What the largest block of each size covers, over the configurations that a device can launch."""
    tiles: dict[str, int] = {}
    threads = [parse(part) for part in block]
    for match in filter(None, map(_BLOCKS.search, grid)):
        tile = parse(match[2])
        read = {name for part in (tile, *threads) for name in part.names} & values.keys()
        for chosen in product(*(values[name] for name in read)):
            config = dict(zip(read, chosen, strict=True))
            with suppress(ExpressionError):  # of a value that is no number
                if prod(integer(part, config) for part in threads) <= _LARGEST_BLOCK:
                    tiles[match[1]] = max(tiles.get(match[1], 1), integer(tile, config))
    return {name: tile for name, tile in tiles.items() if tile > 1}
