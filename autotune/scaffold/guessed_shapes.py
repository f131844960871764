"""Guess how many elements the arrays of a kernel have, from how it indexes them."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from autotune.scaffold.array_shapes import bins, indexed_shapes, indices_of, is_scattered, vectors_of
from autotune.scaffold.guessed_launch import ACROSS, GuessedLaunch
from autotune.scaffold.index_bounds import IndexBounds, LaunchShape, expression_of
from autotune.scaffold.macros import WORD
from autotune.scaffold.tiles import bounded_shape, bounds_of
from autotune.sources.facts import names_in


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
        if is_number and (value := expression_of(launch.number(item))) is not None:
            numbers[item.name] = value
    shape = LaunchShape(launch.grid, launch.block, launch.names, frozenset(launch.sizes), numbers)
    return IndexBounds(launch.facts, shape)


def indexed_shape(array: str, launch: GuessedLaunch, bounds: IndexBounds) -> GuessedShape:
    """The shape that the indices of an array suggest."""
    facts, sizes = launch.facts, launch.sizes
    layouts = indexed_shapes(array, facts, sizes)
    if len(layouts) == 1:
        return GuessedShape(layouts[0], "shape guessed from its index")
    is_histogram = is_scattered(array, facts)
    bound = bins(array, facts, launch.source.read.constants, launch.names) if is_histogram else ""
    bound = bound or bounded_shape(indices_of(array, facts), facts, sizes)
    bound = bound or vectors_of(array, facts, sizes)
    if not bound:
        reached, is_complete = bounds.of_array(array)
        words = {word for index in indices_of(array, facts) for word in names_in(index)}
        is_compared = not bounds_of(words, facts).isdisjoint(sizes)
        is_size = is_complete and len(reached) == 1 and reached[0] in sizes
        bound = reached[0] if is_size and not is_compared and not is_histogram else ""
    extents = (bound,) if bound else _elements(launch, is_one_layout=not layouts)
    if not bound and not layouts and not indices_of(array, facts):
        return GuessedShape(extents, "no index was found: how many elements?", is_indexed=False)
    is_open = is_histogram and not bound
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


def questioned(shape: GuessedShape, parameters: Collection[str]) -> GuessedShape:
    """The shape of an array in global memory, with a question if it depends on what is tuned."""
    tuned = dict.fromkeys(word for word in WORD.findall(" ".join(shape.extents)) if word in parameters)
    if not tuned:
        return shape
    return shape._replace(question=f"{shape.question}, a guess to check: it depends on {', '.join(tuned)}")
