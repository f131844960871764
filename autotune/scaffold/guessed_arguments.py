"""Guess what the arguments of a kernel hold: roles, shapes, fills and values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from autotune.core.records import Value
from autotune.scaffold.extents import IndexBounds
from autotune.scaffold.macros import WORD
from autotune.scaffold.outcome import Role, scalar_value
from autotune.scaffold.reading import FoundKernel, KernelArgument, Source
from autotune.scaffold.shapes import bins, indexed_shapes, indices_of, is_scattered, steers, vectors_of
from autotune.scaffold.tiles import bounded_shape, bounds_of

ACROSS = re.compile(r"n|w|width|nx|\w*cols?|\w*columns?|size_?x", re.IGNORECASE)  # sizes of a row
_BLOCKS = re.compile(r"(?i)(?:n(?:um)?_?|nr_?|n_)?(?:of_?)?(?:blks?|blocks|work_?groups|groups)")


@dataclass(frozen=True)
class GuessedArgument:
    """An argument of the space file: an array with role, shape and fill, or a scalar with a value.

    `is_result` holds for an array that the kernel only writes, whatever its role is for now.
    """

    argument: KernelArgument
    role: Role | None
    shape: tuple[str, ...] = ()
    fill: str = ""
    value: str = ""
    remark: str = ""
    is_result: bool = False


def number_value(
    argument: KernelArgument, kernel: FoundKernel, sizes: Sequence[str], grid: Sequence[str]
) -> str:
    """The value of a number: that of the grid if it is called like the number of blocks."""
    is_count = argument.name not in sizes and _BLOCKS.fullmatch(argument.name) is not None
    return grid[0] if is_count else scalar_value(argument, kernel, sizes)


def scalar_argument(
    argument: KernelArgument, kernel: FoundKernel, sizes: Sequence[str], grid: Sequence[str]
) -> GuessedArgument:
    """A number that is passed."""
    value = number_value(argument, kernel, sizes, grid)
    return GuessedArgument(
        argument, None, value=value, remark="" if value in sizes else "any number will do?"
    )


def variable_argument(argument: KernelArgument, names: Collection[str]) -> GuessedArgument:
    """A variable of the source that a program fills before a launch."""
    known = set(WORD.findall(argument.shape)) <= set(names)
    extents = argument.shape if known else "1"
    shape = (extents if argument.width == 1 else f"{argument.width} * {extents}",)
    remark = "" if known else "how many elements are copied?"
    return GuessedArgument(argument, Role.IN, shape, _fill(argument), remark=remark)


def array_shape(
    argument: KernelArgument,
    kernel: FoundKernel,
    source: Source,
    names: Sequence[str],
    axes: Sequence[str],
    values: Mapping[str, tuple[Value, ...]],
    bounds: IndexBounds,
) -> tuple[tuple[str, ...], str]:
    """The shape of an array, and what to ask about it."""
    array, body = argument.name, kernel.body
    layouts = indexed_shapes(array, body, names)
    if len(layouts) == 1:
        return layouts[0], "shape guessed from its index"
    is_histogram = is_scattered(array, body)
    bound = bins(array, body, source.constants, {*names, *values}) if is_histogram else ""
    bound = bound or bounded_shape(list(indices_of(array, body)), body, names)
    bound = bound or vectors_of(array, body, names)
    if not bound:
        reached, is_complete = bounds.of_array(array)
        words = {word for index in indices_of(array, body) for word in WORD.findall(index)}
        is_compared = any(size in names for word in words for size in bounds_of(word, body))
        is_size = is_complete and len(reached) == 1 and reached[0] in names
        bound = reached[0] if is_size and not is_compared and not is_histogram else ""
    extents = (bound,) if bound else _elements(names, axes, is_one_layout=not layouts)
    if not bound and not layouts and not any(indices_of(array, body)):
        return extents, "no index was found: how many elements?"
    return extents, "shape guessed: how many elements?" if is_histogram and not bound else "shape guessed"


def _elements(names: Sequence[str], axes: Sequence[str], *, is_one_layout: bool) -> tuple[str, ...]:
    """As many elements as all sizes together have; two sizes are rows and columns."""
    if len(names) == 1:
        return (" * ".join([*names] * len(axes)),)
    if len(names) == 2 and is_one_layout:
        row = next((name for name in names if ACROSS.fullmatch(name)), names[-1])
        return (names[names[0] == row], row)
    return (" * ".join(names),)


def array_argument(
    argument: KernelArgument,
    role: Role,
    guessed: tuple[tuple[str, ...], str],
    body: str,
    *,
    has_reference: bool,
    is_roomy: bool,
) -> GuessedArgument:
    """An array with its role, and a fill if it has an input; `is_roomy` fills whole numbers with 0."""
    extents, question = list(guessed[0]), guessed[1]
    if argument.width > 1:
        extents[-1] = f"{argument.width} * {_factor(extents[-1])}"
    shape = tuple(extents)
    if role is Role.LOCAL:
        return GuessedArgument(argument, role, shape, remark=question)
    if role is Role.OUT and not has_reference:
        remark = f"{question}; `role: out`, without a fill, once reference() returns it"
        return GuessedArgument(argument, Role.INOUT, shape, "constant: 0", remark=remark, is_result=True)
    if role is Role.OUT:
        return GuessedArgument(argument, role, shape, remark=question, is_result=True)
    if role is Role.SUM:
        remark = f"{question}; atomics add to it, from 0"
        return GuessedArgument(argument, Role.INOUT, shape, "constant: 0", remark=remark)
    is_whole = "int" in argument.dtype
    if (is_whole and is_roomy) or (steers(argument.name, body) and argument.dtype != "uint8"):
        remark = f"{question}; it holds indices or counts, and 0 is always in bounds: give real ones"
        return GuessedArgument(argument, role, shape, "constant: 0", remark=remark)
    return GuessedArgument(argument, role, shape, _fill(argument), remark=question)


def _factor(extent: str) -> str:
    return extent if re.fullmatch(r"[\w *]+", extent) else f"({extent})"


def _fill(argument: KernelArgument) -> str:
    if argument.dtype.startswith(("float", "bfloat", "DTYPE")):
        return "uniform: [-1, 1]"
    if re.fullmatch(r"(?i).*(ind(ex|ices)|idx|map|perm\w*|order)", argument.name):
        return "sequence: [0, 1]"
    if argument.dtype == "uint8":
        return "integers: [0, 255]"
    return "integers: [0, 100]" if argument.dtype.startswith("u") else "integers: [-100, 100]"
