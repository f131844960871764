"""Sizes that tell a configuration's cases apart, and a text on those that no verified size stands for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from autotune.evaluation.instance import KernelInstance

_COMMON = (1, 2, 3, 33, 257, 1025, 4099, 65_537)  # sizes of any kernel; the last needs 17 bits
_MAX_TILE = 4096


def tiles(instance: KernelInstance) -> list[int]:
    """The numbers that may divide a size: a configuration's, its blocks' extents and products of two."""
    numbers = {value for value in instance.config.values() if type(value) is int}
    numbers |= {extent for step in instance.problem.launches for extent in step.block}
    both = {one * other for one, other in product(numbers, repeat=2)}
    return sorted(number for number in numbers | both if 1 < number <= _MAX_TILE)


def telling_sizes(found: Sequence[int]) -> list[int]:
    """Sizes of any kernel, then those around tiles, each once."""
    around = (size for tile in found for size in (tile + 1, tile - 1, tile, 2 * tile + 1))
    return list(dict.fromkeys((*_COMMON, *around)))


def lacking(verified: Sequence[int], size: int, found: Sequence[int]) -> str:
    """The property that this size has and no verified size, to follow the words "no verify size"."""
    whole = [tile for tile in found if size % tile == 0 and all(one % tile for one in verified)]
    rest = [tile for tile in found if size % tile and not any(one % tile for one in verified)]
    if verified and size > max(verified):
        return "is as large"
    if verified and size < min(verified):
        return "is as small"
    if rest:
        return f"leaves a tail of tiles of {rest[-1]}"
    if whole:
        return f"is a multiple of {whole[-1]}"
    return f"is {size}"
