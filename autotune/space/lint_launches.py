"""Find grids, blocks and verify sizes that do not fit the source or each other."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np

from autotune.core.expressions import integer, names_behind, parse
from autotune.core.syntax import parse_expression
from autotune.errors import ExpressionError
from autotune.sources.facts import Facts, factors_around, facts
from autotune.sources.kernel_source import KernelSource
from autotune.sources.triton_module import TritonModule
from autotune.sources.triton_walk import walk
from autotune.space.findings import Finding
from autotune.space.signatures import own_name
from autotune.space.space import ValidSpace
from autotune.space.yaml_document import located

_TILE = re.compile(r"ceil_div\((\w+), (\w+)\)")  # a size, and the threads of a block
_THREAD_INDEX = {"portable": "THREAD_INDEX({0})", "cuda": "threadIdx.{0}", "opencl": "get_local_id({1})"}


def partial_warps(space: ValidSpace) -> Iterator[Finding]:
    """Blocks of the default and the landmarks that are not whole warps, the first at each place."""
    spec, warp = space.spec, space.device.warp_size
    told: set[int] = set()
    for config in (spec.default, *(landmark.config for landmark in spec.landmarks)):
        if config not in space or space.device.kind != "gpu":
            continue
        for step in space.launches(config):
            threads = math.prod(step.block)
            number = next(
                at for at, launch in enumerate(spec.launch) if own_name(launch.entry) == own_name(step.entry)
            )
            if threads > warp and threads % warp and number not in told:
                told.add(number)
                place = f"launch[{number}].block"
                shape = " x ".join(str(extent) for extent in step.block if extent > 1)
                detail = (
                    f"a block of {shape} threads is {threads / warp:g} warps, and its last warp uses only "
                    f"{threads % warp} of {warp} lanes, with {config}; choose blocks of whole warps, for "
                    "example by a constraint on THREADS % device.warp_size"
                )
                yield Finding("partial_warp", place, detail, located(spec.path, place))


def wrong_launches(space: ValidSpace, source: KernelSource) -> Iterator[Finding]:
    """Grids and blocks that do not fit the indices in a source's only kernel."""
    if len(source.kernels) == 1:
        body = [statement for function in source.device_functions for statement in function.body]
        done = facts(body, [item.name for item in source.kernels[0].parameters if item.pointers])
        yield from _large_grids(space, done)
        yield from _flat_blocks(space, done)


def _large_grids(space: ValidSpace, source_facts: Facts) -> Iterator[Finding]:
    """Grids with too many blocks.

    One block per element although a block's threads each have one, or a tile that lacks a factor of every
    array's index.
    """
    names = {parameter.name for parameter in space.parameters}
    several = {item.name for item in space.parameters if any(value not in (0, 1) for value in item.values)}
    subscripts = [source_facts.written_out(access.index) for access in source_facts.accesses]
    for number, step in enumerate(space.spec.launch):
        for axis, (letter, grid, block) in enumerate(zip("xyz", step.grid, step.block, strict=False)):
            extents, tile = {f"blockDim.{letter}", block}, _TILE.fullmatch(grid)
            if grid in space.problem.sizes and block != "1":
                products = _factors_of_block(source_facts.expressions, letter)
                covering = [factors for factors in products if factors & extents]
                if not covering:
                    continue
                size, left_out = grid, (max(covering, key=len) & names) - extents
                why = (
                    f"{grid} blocks of {block} threads are too many: the source multiplies a block's index "
                    "by its threads"
                )
            elif tile is not None and tile[1] in space.problem.sizes and tile[2] == block:
                products = _factors_of_block(subscripts, letter)
                size, left_out = tile[1], set.intersection(several, *products) - extents
                if not left_out or not products or not all(factors & extents for factors in products):
                    continue
                why = (
                    f"{grid} has blocks without an element: the source multiplies a thread's index by "
                    f"{' and '.join(sorted(left_out))}"
                )
            else:
                continue
            place = f"launch[{number}].grid[{axis}]"
            each = " * ".join((block, *sorted(left_out)))
            detail = f'{why}; write "ceil_div({size}, {each})"'
            yield Finding("large_grid", place, detail, located(space.spec.path, place))


def _factors_of_block(nodes: Iterable[ast.expr], letter: str) -> list[set[str]]:
    """For each place of a block's index in expressions, the factors of its product."""
    return [
        {ast.unparse(factor) for factor in factors}
        for node in nodes
        for factors in factors_around(node, f"blockIdx.{letter}")
    ]


def _flat_blocks(space: ValidSpace, source_facts: Facts) -> Iterator[Finding]:
    """Blocks with fewer dimensions than the thread indices that the source's only kernel reads."""
    for number, step in enumerate(space.spec.launch):
        for axis in range(len(step.block), 3):
            letter = "xyz"[axis]
            if f"threadIdx.{letter}" in source_facts.read_indices:
                own = [item.name for item in space.parameters if item.name.lower().endswith(f"_{letter}")]
                block = ", ".join((*step.block, *(own[:1] or ["NUMBER"])))
                place = f"launch[{number}].block"
                index = _THREAD_INDEX[space.spec.dialect].format(letter, axis)
                detail = (
                    f"the source reads {index}, which is always 0, as the block has no threads along "
                    f"{letter}; write block: [{block}]"
                )
                yield Finding("flat_block", place, detail, located(space.spec.path, place))
                break


def odd_tiles(space: ValidSpace, module: TritonModule) -> Iterator[Finding]:
    """Values that Triton does not compile: lengths of tiles, and numbers of warps, are powers of two."""
    lengths = {"num_warps"}
    for name in {step.entry for step in space.spec.launch}:
        lengths |= walk(module, module.kernels[name], space.spec.default).tiles
    for parameter in space.parameters:
        whole = [value for value in parameter.values if isinstance(value, int)]
        odd = [str(value) for value in whole if value < 1 or value & (value - 1)]
        if parameter.name in lengths and odd:
            kind = "numbers of warps" if parameter.name == "num_warps" else "lengths of tiles"
            detail = f"Triton takes powers of two as {kind}; remove {', '.join(odd)}"
            place = located(space.spec.path, f"parameters.{parameter.name}")
            yield Finding("odd_tile", parameter.name, detail, place)


def untried_edges(space: ValidSpace) -> Iterator[Finding]:
    """Sizes for which `verify_sizes` lacks a multiple of the largest tile, or one less or more than it."""
    if space.spec.functions.source is not None:  # a script has one problem
        return
    for name, tile in _largest_tiles(space).items():
        edges = _edges(space, name, tile)
        tried = [
            sizes[name] for sizes in space.spec.verify_sizes if sizes.get(name, 0) >= min(edges, default=1)
        ]
        missing = [edge for edge in edges if all((size - edge) % tile for size in tried)]
        if missing:
            *before, last = map(str, missing)
            added = f"sizes of {', '.join(before)} and {last}" if before else f"a size of {last}"
            close = "" if {*edges} >= {tile - 1, tile + 1} else ", as near as `constraints` allow"
            detail = (
                f"verify_sizes needs a multiple of the largest tile, {tile}, and sizes just below and just "
                f"above one{close}: add {added}"
            )
            yield Finding("untried_edge", name, detail, located(space.spec.path, "verify_sizes"))


def _edges(space: ValidSpace, name: str, tile: int) -> list[int]:
    """A tile and the nearest sizes on both sides of it, as far as the constraints allow them."""
    spec, sizes = space.spec, space.problem.sizes
    config = spec.default if space.holds(spec.default, sizes) else space.config(0)

    def is_allowed(size: int) -> bool:
        others = ({**sizes, **one, name: size} for one in ({}, *spec.verify_sizes))
        return any(space.holds(config, one) for one in (dict.fromkeys(sizes, size), *others))

    sides = range(tile - 1, 0, -1), range(tile, tile + 1), range(tile + 1, 2 * tile)
    nearest = (next(filter(is_allowed, side), 0) for side in sides)
    return [*filter(None, nearest)]


def _largest_tiles(space: ValidSpace) -> dict[str, int]:
    """The largest tile above 1 of each size: a divisor in `ceil_div(SIZE, divisor)` that reads no size."""
    spec = space.spec
    texts = [*spec.derived.values(), *(text for step in spec.launch for text in step.grid)]
    calls = [node for text in texts for node in ast.walk(parse_expression(text))]
    tiles: dict[str, int] = {}
    for call in calls:
        match call:
            case ast.Call(func=ast.Name("ceil_div"), args=[ast.Name(size), divisor]) if (
                size in space.problem.sizes
            ):
                tile = _largest(space, ast.unparse(divisor))
                if tile > tiles.get(size, 1):
                    tiles[size] = tile
    return tiles


def _largest(space: ValidSpace, text: str) -> int:
    """The largest value of an expression over the valid configurations; 0 if it depends on a size."""
    expression = parse(text)
    names = names_behind(expression.names, space.spec.derived)
    if names & space.problem.sizes.keys():
        return 0
    columns = [column for column, parameter in enumerate(space.parameters) if parameter.name in names]
    key = np.zeros(len(space), np.int64)  # equal for rows with equal values of what the expression reads
    for column in columns:
        key = key * len(space.parameters[column].values) + space.rows[:, column]
    largest = 0
    for index in np.unique(key, return_index=True)[1].tolist():
        with suppress(ExpressionError):
            largest = max(largest, integer(expression, space.values(space.config(index))))
    return largest
