"""Give arrays room for the indices that a kernel uses: halos and padding need more than sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from autotune.core.expressions import integer, parse
from autotune.core.records import Value
from autotune.errors import ExpressionError
from autotune.scaffold.guessed_launch import GuessedLaunch
from autotune.scaffold.guessed_shapes import GuessedShape
from autotune.scaffold.index_bounds import IndexBounds

_NEIGHBOURS = "reads neighbours: this shape if a guard keeps them inside"
_ROOM, _MORE_ROOM = 8, 1_048_576  # for arrays whose extent nothing shows


def samples(
    launch: GuessedLaunch, extents: Sequence[int], checks: Sequence[Sequence[int]]
) -> list[dict[str, Value]]:
    """Values by which numbers of elements are compared.

    They are those of all sizes with the default, the least and the largest values of parameters.

    Args:
        launch: Its sizes and parameters get the values.
        extents: Those of every size.
        checks: The extents of each size, several times.
    """
    configs = [{item.name: item.default for item in launch.parameters}]
    configs += [{item.name: item.values[place] for item in launch.parameters} for place in (0, -1)]
    every = [dict.fromkeys(launch.sizes, one) for one in extents]
    every += [dict(zip(launch.sizes, one, strict=True)) for one in checks]
    return [{**config, **one} for config in configs for one in every]


def local_shape(
    array: str, block: Sequence[str], bounds: IndexBounds, samples: Sequence[Mapping[str, Value]]
) -> GuessedShape:
    """The elements that each block has in local memory: as indices reach, else two for each thread."""
    needed, _ = bounds.of_array(array)
    if needed:
        return GuessedShape((_largest(_not_covered(needed, "1", samples) or ["1"]),), "for each block")
    extent = " * ".join(("2", *(part for part in block if part != "1")))
    return GuessedShape((extent,), "for each block: how many elements?")


def roomy_shape(guessed: GuessedShape) -> GuessedShape:
    """A shape with room for far more than was guessed."""
    shape = (f"{_ROOM} * ({_elements(guessed)}) + {_MORE_ROOM}",)
    return guessed._replace(extents=shape, question="room enough, it seems: how many elements?")


def covering_shape(
    array: str,
    guessed: GuessedShape,
    bounds: IndexBounds,
    samples: Sequence[Mapping[str, Value]],
    *,
    is_read: bool,
) -> GuessedShape:
    """The guessed shape if it has room for every index whose bound is known, else one that has.

    Args:
        array: Its name.
        guessed: The shape that its indices suggest.
        bounds: Those of the kernel's indices.
        samples: Values by which numbers of elements are compared.
        is_read: Whether the kernel only reads it.
    """
    needed, is_complete = bounds.of_array(array)
    larger = _not_covered(needed, _elements(guessed), samples)
    if not larger:
        is_guarded = is_read and bounds.reads_neighbours(array)
        return guessed._replace(question=_NEIGHBOURS) if is_guarded else guessed
    extents = larger if is_complete else [*larger, _elements(guessed)]
    return GuessedShape((_largest(extents),), "as its indices reach")


def _elements(shape: GuessedShape) -> str:
    return " * ".join(f"({part})" for part in shape.extents)


def _largest(extents: Sequence[str]) -> str:
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


def _is_covered(one: Sequence[int], other: Sequence[int]) -> bool:
    return all(left <= right for left, right in zip(one, other, strict=True))
