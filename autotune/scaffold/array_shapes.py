"""Guess how many elements arrays have, from how a kernel indexes them, with room for halos and padding."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from autotune.core.expressions import integer, parse
from autotune.core.records import Value
from autotune.errors import ExpressionError
from autotune.scaffold.guessed_launch import ACROSS, GuessedLaunch
from autotune.scaffold.index_bounds import IndexBounds, LaunchShape, expression_of
from autotune.scaffold.reading import KernelArgument
from autotune.scaffold.roles import Role
from autotune.scaffold.tiles import bounds_of, indices_in
from autotune.sources.bare_code import WORD
from autotune.sources.facts import Facts

_DEPTH = 8  # of variables in the index, one in another
_NEIGHBOURS = "reads neighbours: this shape if a guard keeps them inside"
_ROOM, _MORE_ROOM = 8, 1_048_576  # for arrays whose extent nothing shows
_LOCAL_ROOM = 2048  # elements, for those of a block

Monomial = tuple[tuple[str, ...], frozenset[str]]  # the sizes of a product, sorted, and its other names


class GuessedShape(NamedTuple):
    """The extents of an array, what to ask about them, and whether any of the kernel's indices is into it."""

    extents: tuple[str, ...]
    question: str
    is_indexed: bool = True


def index_bounds(launch: GuessedLaunch) -> IndexBounds:
    """What bounds the indices of a kernel."""
    numbers = dict(launch.constants)
    for item in launch.kernel.arguments:
        is_number = not item.is_pointer and "int" in item.dtype and item.name not in launch.sizes
        if is_number and (value := expression_of(launch.number(item)[0])) is not None:
            numbers[item.name] = value
    shape = LaunchShape(launch.grid, launch.block, launch.names, frozenset(launch.sizes), numbers)
    return IndexBounds(launch.facts, shape)


def indexed_shape(array: str, launch: GuessedLaunch, bounds: IndexBounds) -> GuessedShape:
    """The shape that the indices of an array suggest."""
    facts, sizes = launch.facts, launch.sizes
    layouts, indices = _layouts(array, launch), [use.index for use in facts.of(array)]
    if len(layouts) == 1:
        return GuessedShape(layouts[0], "shape guessed from its index")
    reached, is_complete = bounds.of_array(array)
    is_sure = is_complete and len(reached) == 1
    if is_sure and (reached[0] in sizes or (launch.host and launch.host.sizes)):
        return GuessedShape((reached[0],), "shape guessed")
    extents = _elements(launch, is_one_layout=not layouts)
    if not layouts and not indices:
        return GuessedShape(extents, "no index was found: how many elements?", is_indexed=False)
    is_open = any(facts.read_by(facts.written_out(index))[1] for index in indices)
    return GuessedShape(extents, "shape guessed: how many elements?" if is_open else "shape guessed")


def _elements(launch: GuessedLaunch, *, is_one_layout: bool) -> tuple[str, ...]:
    """As many elements as all sizes together have; two sizes are rows and columns."""
    sizes = launch.sizes
    if len(sizes) == 1:
        return (" * ".join([*sizes] * len(launch.axes)),)
    if len(sizes) == 2 and is_one_layout:
        row = next((name for name in sizes if ACROSS.fullmatch(name)), sizes[-1])
        return (sizes[sizes[0] == row], row)
    return (" * ".join(sizes),)


def samples(
    launch: GuessedLaunch, extents: Sequence[int], checks: Sequence[Sequence[int]]
) -> list[dict[str, Value]]:
    """Values by which numbers of elements are compared.

    They are those of all sizes, alike or as in `checks`, with the default, the least and the largest values
    of parameters.
    """
    configs = [launch.default]
    configs += [{item.name: item.values[place] for item in launch.parameters} for place in (0, -1)]
    every = [dict.fromkeys(launch.sizes, extent) for extent in extents]
    every += [dict(zip(launch.sizes, check, strict=True)) for check in checks]
    return [{**config, **sizes} for config in configs for sizes in every]


def with_room(
    argument: KernelArgument,
    role: Role,
    guessed: GuessedShape,
    launch: GuessedLaunch,
    bounds: IndexBounds,
    samples: Sequence[Mapping[str, Value]],
    *,
    is_roomy: bool,
) -> GuessedShape:
    """A shape with room for every index of an array whose bound is known; for far more if `is_roomy`."""
    if role is Role.LOCAL:
        shape = _local_shape(argument.name, launch.block, bounds, samples)
        return shape._replace(extents=(f"max({shape.extents[0]}, {_LOCAL_ROOM})",)) if is_roomy else shape
    if is_roomy:
        extent = f"{_ROOM} * ({_product(guessed)}) + {_MORE_ROOM}"
        shape = GuessedShape((extent,), "room enough, it seems: how many elements?", guessed.is_indexed)
    else:
        shape = _covering_shape(argument.name, guessed, bounds, samples, is_read=role is Role.IN)
    tuned = dict.fromkeys(word for word in WORD.findall(" ".join(shape.extents)) if word in launch.values)
    if not tuned:
        return shape
    return shape._replace(question=f"{shape.question}, a guess to check: it depends on {', '.join(tuned)}")


def _local_shape(
    array: str, block: Sequence[str], bounds: IndexBounds, samples: Sequence[Mapping[str, Value]]
) -> GuessedShape:
    """The elements that each block has in local memory: as indices reach, else two for each thread."""
    needed, _ = bounds.of_array(array)
    if needed:
        return GuessedShape((_largest(_not_covered(needed, "1", samples) or ["1"]),), "for each block")
    extent = " * ".join(("2", *(part for part in block if part != "1")))
    return GuessedShape((extent,), "for each block: how many elements?")


def _covering_shape(
    array: str,
    guessed: GuessedShape,
    bounds: IndexBounds,
    samples: Sequence[Mapping[str, Value]],
    *,
    is_read: bool,
) -> GuessedShape:
    """The guessed shape if it has room for every index whose bound is known, else one that has."""
    needed, is_complete = bounds.of_array(array)
    larger = _not_covered(needed, _product(guessed), samples)
    if is_complete and all(extent.isdigit() and extent != "1" for extent in needed):
        larger = larger or needed
    if not larger:
        is_guarded = is_read and bounds.reads_neighbours(array)
        return guessed._replace(question=_NEIGHBOURS) if is_guarded else guessed
    extents = larger if is_complete else [*larger, _product(guessed)]
    return GuessedShape((_largest(extents),), "as its indices reach")


def _product(shape: GuessedShape) -> str:
    return " * ".join(f"({part})" for part in shape.extents)


def _largest(extents: Sequence[str]) -> str:
    if all(extent.isdigit() for extent in extents):
        return str(max(map(int, extents)))
    return extents[0] if len(extents) == 1 else f"max({', '.join(extents)})"


def _not_covered(needed: Iterable[str], extent: str, samples: Sequence[Mapping[str, Value]]) -> list[str]:
    """The numbers of elements that exceed an extent in one of the samples, without those below another."""
    values = {text: found for text in (*needed, extent) if (found := _values(text, samples)) is not None}
    left = [text for text in values if text != extent and extent in values]
    left = [text for text in left if not _is_covered(values[text], values[extent])]
    return [
        text
        for number, text in enumerate(left)
        if not any(
            _is_covered(values[text], values[other]) and (values[text] != values[other] or place < number)
            for place, other in enumerate(left)
            if place != number
        )
    ]


def _values(text: str, samples: Sequence[Mapping[str, Value]]) -> list[int] | None:
    """The values of an expression; None if it has none in one of the samples, as by a division by zero."""
    try:
        return [integer(parse(text), sample) for sample in samples]
    except ExpressionError:
        return None


def _is_covered(needed: Sequence[int], held: Sequence[int]) -> bool:
    return all(left <= right for left, right in zip(needed, held, strict=True))


def _layouts(array: str, launch: GuessedLaunch) -> list[tuple[str, ...]]:
    """The extents that indices such as `(z * ny + y) * nx + x` show, slowest first, for each layout."""
    shown = (_extents(use.index, launch) for use in launch.facts.of(array))
    return list(dict.fromkeys(shape for shape in shown if shape))


def steers(array: str, facts: Facts) -> bool:
    """True if what an array holds chooses a place in memory, or how often a loop runs.

    An index that a mask or a remainder keeps small does not count.
    """
    names: set[str] = set()
    for _ in range(_DEPTH):
        more = {
            name
            for name, values in (*facts.values.items(), *facts.changed.items())
            if any(_reads(value, array, names, facts) for value in values)
        }
        if more <= names:
            break
        names |= more
    places = [index for use in facts.accesses for index in use.indices]
    return any(
        _reads(place, array, names, facts) and not _is_masked(place) for place in (*places, *facts.loops)
    )


def _reads(node: ast.expr, array: str, names: Collection[str], facts: Facts) -> bool:
    """True if an expression reads an element of an array, or one of some variables."""
    read, arrays = facts.read_by(node)
    return array in arrays or not read.isdisjoint(names)


def _is_masked(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Mod | ast.BitAnd) for part in ast.walk(node))


def _extents(index: ast.expr, launch: GuessedLaunch) -> tuple[str, ...]:
    facts, sizes = launch.facts, launch.sizes
    terms = _monomials(index, facts, sizes, _DEPTH)
    strides = sorted({stride for stride, _ in terms if stride}, key=len)
    names: list[str] = []
    for number, stride in enumerate(strides, 1):
        added = list((Counter(stride) - Counter(names)).elements())
        if len(stride) != number or len(added) != 1:
            return ()
        names += added
    if not names:
        return ()
    slowest = {word for stride, words in terms if stride == strides[-1] for word in words}
    bounds = (bounds_of(slowest, facts) or _counts_of(slowest, launch)) & {*sizes}
    left = bounds if len(bounds) == 1 else set(sizes) - set(names)
    return (*left, *reversed(names)) if len(left) == 1 else ()


def _counts_of(words: Collection[str], launch: GuessedLaunch) -> set[str]:
    """How many blocks there are along the axes whose indices some words are, or stand for.

    Where rows end unguarded, it is the threads along the axis.
    """
    along = {f"blockIdx.{axis}": extent for axis, extent in zip("xyz", launch.grid, strict=False)}
    rows = {f"blockIdx.{axis}": size for axis, size in launch.unguarded.items()}
    values = {word: launch.facts.value(word) for word in words}
    texts = {ast.unparse(value) if value is not None else word for word, value in values.items()}
    read = {index for value in values.values() if value is not None for index in indices_in(value)}
    return {along[text] for text in texts if text in along} | {rows[index] for index in read & rows.keys()}


def _monomials(node: ast.expr | None, facts: Facts, sizes: Sequence[str], depth: int) -> set[Monomial]:
    """The products that an index is a sum of; what is neither sum nor product has no names."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _monomials(left, facts, sizes, depth) | _monomials(right, facts, sizes, depth)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            pairs = product(_monomials(left, facts, sizes, depth), _monomials(right, facts, sizes, depth))
            return {(tuple(sorted(first[0] + second[0])), first[1] | second[1]) for first, second in pairs}
        case ast.Name(id=name) if name in sizes:
            return {((name,), frozenset())}
        case ast.Name(id=name):
            value = facts.value(name) if depth else None
            terms = _monomials(value, facts, sizes, depth - 1) if value is not None else set()
            return terms if any(stride for stride, _ in terms) else {((), frozenset((name,)))}
        case ast.Attribute():
            return {((), frozenset((ast.unparse(node),)))}
    return {((), frozenset())}
