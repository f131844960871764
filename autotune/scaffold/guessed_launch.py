"""Guess how a kernel is launched: what is tuned, for which sizes, and with which block and grid."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.core.launch_plan import RESERVED_NAMES
from autotune.core.records import Value
from autotune.scaffold.guessed_parameters import (
    BLOCK,
    TILE,
    WORK,
    GuessedParameter,
    as_threads,
    asked_if_misspelt,
    axis_of,
    choice_of_constants,
    divided_sizes,
    least_value,
    parameter_of,
    template_macro,
    threads_parameter,
    within_a_block,
)
from autotune.scaffold.host_grid import host_grid
from autotune.scaffold.index_bounds import LaunchShape
from autotune.scaffold.macros import WORD, Macro, expand_calls, wanted_values, with_constants
from autotune.scaffold.reading import FoundKernel, KernelArgument, Source
from autotune.scaffold.scalar_values import is_called, is_offset, scalar_value
from autotune.scaffold.tiles import (
    INDEXED,
    is_blocked,
    rows_of_blocks,
    size_along,
    threads_along,
    threads_per_element,
    tile_of,
)
from autotune.scaffold.types import assumed_bytes, known_types

ACROSS = re.compile(r"n|w|width|nx|\w*cols?|\w*columns?|size_?x", re.IGNORECASE)  # sizes of a row
_SIZE = re.compile(
    r"n|m|k|[nmk]_?\w|w|h|d|len(gth)?|count|num_?\w*|n_\w+|\w*size|width|height|depth|rows?|col(umn)?s?|dim\w*|"
    r"elements|total|limit|end",
    re.IGNORECASE,
)
_BLOCKS = re.compile(r"(?i)(?:n(?:um)?_?|nr_?|n_)?(?:of_?)?(?:blks?|blocks|work_?groups|groups)")
_OF_THE_LAUNCH = "the source does not use it: it shapes the launch"
_DYNAMIC = re.compile(r"\bextern\s+__shared__\s+(?:__align__\(\d+\)\s*)?([\w\s]+?)\s+\w+\s*\[\s*\]")

_GRID_BARRIER = re.compile(
    r"\bthis_grid\s*\(\s*\)\s*\.\s*sync\b|"
    r"\b(\w+)\s*=\s*(?:\w+\s*::\s*)*this_grid\s*\(.*(?:\b\1\s*\.\s*sync\b|\bsync\s*\(\s*\1\b)",
    re.DOTALL,
)


@dataclass(frozen=True)
class GuessedLaunch:
    """How a kernel is launched; the guesses about its arguments rest on it.

    Attributes:
        kernel: Its body has the macros with arguments written out.
        source: Where it is from.
        axes: Those along which it has threads or blocks.
        parameters: What is tuned; at least one.
        fixed_macros: Macros whose defaults are no numbers.
        sizes: Names of the problem's sizes; at least one.
        divided: Sizes that should be multiples of parameters, each with that parameter's name.
        block: Threads along each axis.
        grid: Blocks along each axis.
    """

    kernel: FoundKernel
    source: Source
    axes: tuple[str, ...]
    parameters: tuple[GuessedParameter, ...]
    fixed_macros: tuple[Macro, ...]
    sizes: tuple[str, ...]
    divided: tuple[tuple[str, str], ...]
    block: tuple[str, ...]
    grid: tuple[str, ...] = ()

    @property
    def values(self) -> Mapping[str, tuple[Value, ...]]:
        """The values of each parameter."""
        return {parameter.name: parameter.values for parameter in self.parameters}

    @property
    def names(self) -> frozenset[str]:
        """What a launch plan may read: sizes and parameters."""
        return frozenset((*self.sizes, *self.values))

    @property
    def constants(self) -> Mapping[str, str]:
        """What macros and constants of the source stand for that are no parameters."""
        tuned = self.values
        return {name: text for name, text in self.source.constants.items() if name not in tuned}

    @property
    def is_cooperative(self) -> bool:
        """Whether the kernel has a barrier of the whole grid, for which all blocks have to be resident."""
        return _GRID_BARRIER.search(self.kernel.body) is not None

    @property
    def shared_bytes(self) -> str:
        """Dynamic shared memory: one element for each thread of the block; empty if the kernel has none."""
        match = _DYNAMIC.search(self.kernel.body)
        if match is None:
            return ""
        types = known_types(self.source.code, self.source.definitions, is_opencl=False)
        dtype, width = types.layout(match[1])
        size_bytes = max(4, width * assumed_bytes(dtype))  # bytes are cast to wider elements
        return " * ".join((str(size_bytes), *(part for part in self.block if part != "1")))

    def number(self, argument: KernelArgument) -> str:
        """The value of a number that is passed: the count of blocks if it is called like one."""
        is_count = argument.name not in self.sizes and _BLOCKS.fullmatch(argument.name) is not None
        return self.grid[0] if is_count else scalar_value(argument, self.kernel, self.sizes)


def guess_launch(kernel: FoundKernel, source: Source, *, is_small: bool) -> GuessedLaunch:
    """Guess how to launch a kernel; with `is_small`, parameters have the least of their values by default."""
    kernel = replace(kernel, body=expand_calls(source.text, kernel.body))
    axes = _axes(kernel, source.code)
    tuned = [macro for macro in source.macros if macro.default is None or macro.default.isdigit()]
    fixed = tuple(macro for macro in source.macros if macro not in tuned)
    tuned += [template_macro(item) for item in kernel.template if not item.choices]
    parameters, block = _parameters_and_block(kernel, source, tuned, axes)
    if is_small:
        parameters = [replace(item, default=least_value(item)) for item in parameters]
    sizes = _size_names(kernel, {parameter.name for parameter in parameters})
    divided = divided_sizes(kernel.body, sizes, parameters)
    divisors = {name for _, name in divided}
    parameters = [replace(item, default=1) if item.name in divisors else item for item in parameters]
    launch = GuessedLaunch(kernel, source, tuple(axes), tuple(parameters), fixed, sizes, divided, block)
    return replace(launch, grid=_grid(launch))


def _parameters_and_block(
    kernel: FoundKernel, source: Source, tuned: Sequence[Macro], axes: Sequence[str]
) -> tuple[list[GuessedParameter], tuple[str, ...]]:
    """At least one parameter, and the block, whose extents become parameters where the source has none."""
    parameters = _parameters(kernel, source, tuned, axes)
    block = _block(kernel, source, tuned, axes)
    if not block:
        known = {argument.name for argument in kernel.arguments} | {macro.name for macro in tuned}
        block = _invented_block(axes, known | set(WORD.findall(source.code)))
        parameters += [threads_parameter(name, axes, _OF_THE_LAUNCH) for name in block]
    parameters = [as_threads(item, axes) if item.name in block else item for item in parameters]
    parameters = [within_a_block(item) if item.name in block else item for item in parameters]
    return parameters or [_placeholder(kernel, source)], block


def _parameters(
    kernel: FoundKernel, source: Source, tuned: Sequence[Macro], axes: Sequence[str]
) -> list[GuessedParameter]:
    """Macros and what a template takes; their defaults are values for which the kernel is compiled at all."""
    wanted = wanted_values(source.text, kernel.place)
    defined = [macro.name for macro in tuned if macro.default is not None]
    found = [parameter_of(macro, axes) for macro in tuned]
    extents = set(WORD.findall(" ".join(kernel.block)))
    for place, macro in enumerate(tuned):
        if macro.default is None and macro.name in extents:
            found[place] = threads_parameter(macro.name, axes, "values guessed")
    found = [item if item.name in defined else asked_if_misspelt(item, defined) for item in found]
    for place, item in enumerate(found):
        if (value := wanted.get(item.name)) in item.values:
            found[place] = replace(item, default=item.values[item.values.index(value)])
    return found + [choice_of_constants(item) for item in kernel.template if item.choices]


def _invented_block(axes: Sequence[str], taken: Collection[str]) -> tuple[str, ...]:
    """Names for the extents of a block that the source leaves to the launch."""
    names = ("BLOCK_SIZE",) if len(axes) == 1 else tuple(f"BLOCK_SIZE_{axis.upper()}" for axis in axes)
    return tuple(name if name not in taken else f"LAUNCH_{name}" for name in names)


def _placeholder(kernel: FoundKernel, source: Source) -> GuessedParameter:
    """The parameter of a source that has none, with what to do about it."""
    tests = " ".join(re.findall(r"^[ \t]*#[ \t]*(?:el)?if\b(.*)$", source.text, re.MULTILINE))
    used = WORD.findall(f"{tests} {kernel.body}")
    fixed = [name for name in used if source.definitions.get(name, "").isdigit()]
    remark = "the source leaves nothing open: use a macro in it, and list its values"
    if fixed:
        remark = f"to tune {', '.join(dict.fromkeys(fixed))}, put #ifndef and #endif around each #define"
    return GuessedParameter("VARIANT", (1,), 1, remark)


def _axes(kernel: FoundKernel, code: str) -> list[str]:
    """The axes that a kernel declares or indexes; if it indexes none itself, those of the source."""
    declared = {axis for axis, part in zip("xyz", kernel.block, strict=False) if part != "1"}
    text = kernel.body if any(index.search(kernel.body) for index in INDEXED.values()) else code
    return [axis for axis in "xyz" if axis == "x" or axis in declared or INDEXED[axis].search(text)]


def _block(
    kernel: FoundKernel, source: Source, macros: Sequence[Macro], axes: Sequence[str]
) -> tuple[str, ...]:
    """The declared block if a launch plan can read it, else what names with an axis or indices show."""
    names = frozenset(macro.name for macro in macros)
    numbers = {name: text for name, text in source.constants.items() if name not in names}
    reader = LaunchShape((), (), names, frozenset(), numbers)
    bounds = [reader.bound(part) for part in kernel.block]
    declared = tuple(reader.text(bound) for bound in bounds if bound is not None)
    readable = len(declared) == len(bounds)
    if len(declared) == 3 and readable:
        return declared
    named = {axis_of(macro.name) for macro in macros if BLOCK.fullmatch(macro.name)}
    reckoned = [threads_along(axis, kernel.body) for axis in axes]
    reckoned = [name if name in names else numbers.get(name, name) for name in reckoned]
    shown = [name for name in reckoned if name in names or (name.isdigit() and name != "1")]
    if shown and not named - {None} and (len(axes) > 1 or not named):
        return tuple(name if name in shown else "1" for name in reckoned)
    found = _block_macros(macros, axes)
    return declared if not found and readable and len(axes) == 1 else found


def _block_macros(macros: Sequence[Macro], axes: Sequence[str]) -> tuple[str, ...]:
    """The macros that look like the extents of a block, one for each axis."""
    found = {axis_of(macro.name): macro.name for macro in macros if BLOCK.fullmatch(macro.name)}
    tiles = [macro.name for macro in macros if TILE.fullmatch(macro.name) and axis_of(macro.name) is None]
    if len(axes) > 1 and not found and tiles:
        found = {None: tiles[0]}
    if not found:
        return ()
    return tuple(found.get(axis, found.get(None, "1")) for axis in axes)


def _size_names(kernel: FoundKernel, taken: Iterable[str]) -> tuple[str, ...]:
    """Integer arguments that are named like sizes, or that a thread's index is compared with along an axis.

    Without the former these are those that bound any index, else the first, else n.
    """
    integers = [item.name for item in kernel.arguments if not item.is_pointer and "int" in item.dtype]
    integers = [name for name in integers if not is_called(name, kernel.body)]
    able = [name for name in integers if not is_offset(name, kernel.body)]
    chosen = [name for name in integers if _SIZE.fullmatch(name)]
    if chosen:
        bounds = {size_along(axis, kernel.body, able) for axis in "xyz"}
        chosen = [name for name in integers if name in bounds or name in chosen]
    chosen = chosen or [name for name in integers if re.search(rf"(?:<|>=)\s*{name}\b", kernel.body)]
    chosen = chosen or able[:1] or ["n"]
    usable = [name for name in chosen if name not in {*RESERVED_NAMES, *taken}]
    return tuple(usable) or ("n",)


def _grid(launch: GuessedLaunch) -> tuple[str, ...]:
    """Blocks along each axis: the host's, unless they leave out a parameter that the kernel's own have."""
    shown = _shown_grid(launch)
    if launch.kernel.launch is None:
        return shown
    arguments = [argument.name for argument in launch.kernel.arguments]
    grid = host_grid(launch.kernel.launch, arguments, launch.block, launch.names, launch.constants)
    words = set(WORD.findall(" ".join(grid)))
    needed = set(WORD.findall(" ".join(shown))) & launch.values.keys()
    return _without_ones(grid) if words & {*launch.sizes} and needed <= words else shown


def _without_ones(grid: Sequence[str]) -> tuple[str, ...]:
    """A grid without its last axes that have one block."""
    used = [number for number, extent in enumerate(grid) if number == 0 or extent != "1"]
    return tuple(grid[: used[-1] + 1])


def _shown_grid(launch: GuessedLaunch) -> tuple[str, ...]:
    """The grid that the kernel's own text shows: what it says of tiles and sizes first, names second."""
    body = with_constants(launch.kernel.body, launch.constants)
    axes, block, sizes = launch.axes, launch.block, launch.sizes
    along = {axis: size_along(axis, body, sizes) for axis in axes}
    left = [name for name in sizes if name not in along.values()] or sizes
    across = next((name for name in left if ACROSS.fullmatch(name)), left[0])
    others = [name for name in left if name != across] or [across]
    tiles = {axis: tile_of(axis, body, block, launch.values, along[axis]) for axis in axes}
    blocked = [axis for axis in axes if is_blocked(axis, body)] or axes
    placed = set(WORD.findall(" ".join(tiles.values())))
    work = {axis_of(name) or "x": name for name in launch.values if _is_work(name, body)}

    def blocks(number: int, axis: str) -> str:
        if axis not in blocked:
            return "1"
        if rows := rows_of_blocks(axis, body, sizes):
            return rows
        size = across if number == 0 else others[min(number - 1, len(others) - 1)]
        count = along[axis] or (" * ".join(sizes) if len(axes) == 1 else size)
        if sharing := threads_per_element(axis, body, launch.values, count):
            count = f"{count} * {sharing}"
        threads = block[number] if number < len(block) else "1"
        tile = _tile(tiles[axis], threads, work.get(axis, ""), placed)
        return f"ceil_div({count}, {tile})" if tile != "1" else count

    return _without_ones([blocks(number, axis) for number, axis in enumerate(axes)])


def _tile(shown: str, threads: str, work: str, placed: Collection[str]) -> str:
    """What a block covers along an axis.

    Args:
        shown: What the kernel's text shows; empty if it shows nothing.
        threads: Of the block.
        work: What each thread computes; empty if that has no name.
        placed: The names that are in the tile of any axis.
    """
    usual = f"{threads} * {work}" if work else threads
    if sorted(shown.split(" * ")) == sorted(usual.split(" * ")):
        return usual
    return shown or (threads if work in placed else usual)


def _is_work(name: str, body: str) -> bool:
    """Whether a macro of a kernel is the number of elements that each thread computes."""
    return WORK.fullmatch(name) is not None and name in WORD.findall(body)
