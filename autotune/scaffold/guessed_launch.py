"""Guess how a kernel is launched: what is tuned, for which sizes, and with which block and grid."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from autotune.core.launch_plan import RESERVED_NAMES, macro_name
from autotune.core.records import Value
from autotune.scaffold.guessed_parameters import (
    BLOCK,
    TILE,
    GuessedParameter,
    axis_of,
    least_value,
    parameter_of,
    template_macro,
    threads_parameter,
    with_elements,
    within_a_block,
)
from autotune.scaffold.host_formulas import HostFormulas, KnownNames, declared_extents
from autotune.scaffold.macros import OpenMacro
from autotune.scaffold.reading import Assumptions, FoundKernel, KernelArgument, Source, reads
from autotune.scaffold.roles import is_offset, scalar_value
from autotune.scaffold.tiles import (
    reads_index,
    row_length,
    rows_of_blocks,
    size_along,
    threads_along,
    tile_of,
)
from autotune.scaffold.types import KnownTypes
from autotune.sources.bare_code import WORD
from autotune.sources.facts import Facts, facts, names_in
from autotune.sources.type_layouts import assumed_bytes
from autotune.sources.whole_numbers import number_of

ACROSS = re.compile(r"n|w|width|nx|\w*cols?|\w*columns?|size_?x", re.IGNORECASE)  # sizes of a row
_SIZE = re.compile(
    r"n|m|k|[nmk]_?\w|w|h|d|len(gth)?|count|num_?\w*|n_\w+|\w*size|width|height|depth|rows?|col(umn)?s?|dim\w*|"
    r"elements|total|limit|end",
    re.IGNORECASE,
)
_BLOCKS = re.compile(r"(?i)(?:n(?:um)?_?|nr_?|n_)?(?:of_?)?(?:blks?|blocks|work_?groups|groups)")
_FREE_NAMES = ("n", "count", "elements", *(f"n_{number}" for number in range(1000)))  # for a size without one
OF_HOST = "as the host passes it"
_LARGE = 16  # the edge of a fragment, and the bytes of the widest load
PLACEHOLDER = "VARIANT"  # the parameter of a source without one
_ANY = "any number will do?"
_OF_THE_LAUNCH = "the source does not use it: it shapes the launch"


@dataclass(frozen=True)
class GuessedLaunch:
    """How a kernel is launched; the guesses about its arguments rest on it."""

    kernel: FoundKernel
    source: Source
    axes: tuple[str, ...]  # those along which it has threads or blocks
    parameters: tuple[GuessedParameter, ...]  # what is tuned; at least one
    fixed_macros: tuple[OpenMacro, ...]  # that stay at their defaults: no numbers, or part of the problem
    sizes: tuple[str, ...]  # names of the problem's sizes; at least one
    block: tuple[str, ...]  # threads along each axis
    grid: tuple[str, ...] = ()  # blocks along each axis
    host: HostFormulas | None = None  # what the host passes to the kernel

    @property
    def values(self) -> Mapping[str, tuple[Value, ...]]:
        """The values of each parameter."""
        return {parameter.name: parameter.values for parameter in self.parameters}

    @property
    def default(self) -> Mapping[str, Value]:
        """The default of each parameter."""
        return {parameter.name: parameter.default for parameter in self.parameters}

    @property
    def unguarded(self) -> Mapping[str, str]:
        """By axis, the size that ends a row of threads, where no condition keeps them out of the next row."""
        asked = {name for test in self.facts.compared if not test.is_loop for name in names_in(test.right)}
        lengths = {axis: row_length(axis, self.facts, self.sizes) for axis in self.axes}
        return {axis: size for axis, size in lengths.items() if size and size not in asked}

    @property
    def names(self) -> frozenset[str]:
        """What a launch plan may read: sizes and parameters."""
        return frozenset((*self.sizes, *self.values))

    @property
    def constants(self) -> Mapping[str, ast.expr]:
        """What constants of the source stand for that are no parameters."""
        tuned = self.values
        constants = {name: value for name, value in self.source.read.constants.items() if name not in tuned}
        numbers = [macro for macro in self.fixed_macros if (macro.default or "").isdigit()]
        return constants | {one.name: ast.Constant(int(one.default or "")) for one in numbers}

    @property
    def facts(self) -> Facts:
        """What the kernel's statements do."""
        return self.kernel.facts

    @property
    def doubts(self) -> list[str]:
        """Why grid and block are not those of the host, where it launches the kernel or at least names it."""
        if self.host is None:
            name, host = self.kernel.name, self.source.host
            callers = (one for one in host.functions if one.is_of_host)
            naming = [one.name for one in callers if reads(one, name)]
            found = f"names {name}, but no launch of it was found: {_guessed('launch')}"
            return [f"{one}() {found}" for one in naming[:1]]
        doubts = []
        if part := _unread_block(self.kernel, self.source, self.names):
            doubts.append(f"the host's block needs {part}, which was not understood: {_guessed('block')}")
        if part := self.host.unread:
            doubts.append(f"the host's grid needs {part}, which was not understood: {_guessed('grid')}")
        elif self.grid != _without_ones(self.host.grid):
            blocks = ", ".join(_without_ones(self.host.grid))
            doubts.append(f"the host's grid, ({blocks}), {_lack(self)}: {_guessed('grid')}")
        return doubts

    @property
    def unshown(self) -> list[str]:
        """The axes along which a thread reads its index, although nothing shows more than one thread."""
        alone = [axis for axis, extent in zip(self.axes, self.block, strict=False) if extent == "1"]
        return [axis for axis in alone if reads_index(self.facts, axis, "threadIdx")]

    @property
    def shared_bytes(self) -> tuple[str, str]:
        """Dynamic shared memory and a remark: the host's, else an element for each thread of the block.

        Empty if the kernel has none.
        """
        kinds = [variable.type for variable in self.facts.declared.values() if variable.is_dynamic]
        if not kinds:
            return "", ""
        if self.host and (given := self.host.shared_bytes):
            return given, OF_HOST
        dtype, width = KnownTypes.of(self.kernel.function.source).layout(kinds[0])
        size_bytes = max(4, width * assumed_bytes(dtype))  # bytes are cast to wider elements
        parts = (str(size_bytes), *(part for part in self.block if part != "1"))
        return " * ".join(parts), "an element for each thread?"

    def number(self, argument: KernelArgument) -> tuple[str, str]:
        """The value of a number that is passed, and a remark if it is no size.

        It is the count of blocks if it is called like one, else the host's.
        """
        if argument.name in self.sizes:
            return argument.name, ""
        if _BLOCKS.fullmatch(argument.name):
            return self.grid[0], _ANY
        passed = self.kernel.passed
        is_given = self.host and "int" in argument.dtype and argument.name in passed
        if self.host and is_given and (given := self.host.number(passed.index(argument.name))):
            return given, OF_HOST
        value = scalar_value(argument, self.kernel, self.facts, self.sizes)
        return value, "" if value in self.sizes else _ANY


def guess_launch(kernel: FoundKernel, source: Source, assumed: Assumptions) -> GuessedLaunch:
    """Guess how to launch a kernel."""
    axes = _axes(kernel)
    macros = [item for item in source.macros if item.test != "defined" or item.name in kernel.wanted]
    tuned = [
        macro
        for macro in macros
        if macro.default is None or (macro.default.isdigit() and macro.name not in assumed.fixed)
    ]
    fixed = tuple(macro for macro in macros if macro not in tuned)
    tuned += [template_macro(item) for item in kernel.template]
    parameters, block = _parameters_and_block(kernel, source, tuned, axes)
    others = (
        function for function in kernel.function.source.device_functions if function is not kernel.function
    )
    compiled = chain([kernel.facts], (facts(one.body, ()) for one in others))  # with the kernel
    left_open = {macro.name for macro in tuned if macro.default is None and not macro.numbers}
    if assumed.is_large:
        parameters = [
            replace(item, values=(_LARGE,), default=_LARGE)
            if item.name in left_open and item.values[0] == item.default == 1
            else item
            for item in parameters
        ]
    types = KnownTypes.of(kernel.function.source)
    parameters = with_elements(parameters, compiled, left_open, types.bytes_of)
    parameters = [
        replace(item, values=(item.default,), remark="the arrays depend on it")
        if item.name in assumed.fixed
        else item
        for item in parameters
    ]
    if assumed.is_small:
        parameters = [replace(item, default=least_value(item)) for item in parameters]
    sizes = _size_names(kernel, {parameter.name for parameter in parameters})
    return _with_host(
        GuessedLaunch(kernel, source, tuple(axes), tuple(parameters), fixed, sizes, block),
    )


def _with_host(launch: GuessedLaunch) -> GuessedLaunch:
    """The launch with the host's grid, and with sizes that only the host knows, where its grid needs them."""
    if launch.kernel.launch is None:
        return replace(launch, grid=_shown_grid(launch))
    passed = tuple(name for name in launch.sizes if name in launch.kernel.integers)
    host = _host(replace(launch, sizes=passed)).with_sizes()
    wider = replace(launch, sizes=(*passed, *host.sizes), host=host)
    if host.sizes and not _lack(wider):
        return replace(wider, grid=_without_ones(host.grid))
    host = _host(launch)
    plain = replace(launch, host=host)
    return replace(plain, grid=_shown_grid(plain) if _lack(plain) else _without_ones(host.grid))


def _host(launch: GuessedLaunch) -> HostFormulas:
    """What the host passes to the kernel."""
    kernel, source = launch.kernel, launch.source
    assert kernel.launch is not None
    functions = kernel.function.source.device_functions
    used = {part.id for one in functions for part in one.parts if isinstance(part, ast.Name)}
    used |= {name for one in functions for name in one.declared}
    known = KnownNames(launch.names, launch.constants, used, KnownTypes.of(kernel.function.source).bytes_of)
    return HostFormulas.of(kernel.launch, source.host, kernel.passed, launch.block, known)


def _parameters_and_block(
    kernel: FoundKernel, source: Source, tuned: Sequence[OpenMacro], axes: Sequence[str]
) -> tuple[list[GuessedParameter], tuple[str, ...]]:
    """At least one parameter, and the block, whose extents become parameters where the source has none."""
    block = _block(kernel, source, tuned, axes)
    parameters = _parameters(kernel, tuned, axes, block)
    if not block:
        known = {argument.name for argument in kernel.arguments} | {macro.name for macro in tuned}
        alone = _without_threads(kernel, source, axes)
        block = _invented_block(axes, known | source.read.code.used | source.branches.defined, alone)
        parameters += [threads_parameter(name, axes, _OF_THE_LAUNCH) for name in block if name != "1"]
    parameters = [within_a_block(item, block) for item in parameters]
    return parameters or [_placeholder(source)], block


def _parameters(
    kernel: FoundKernel, tuned: Sequence[OpenMacro], axes: Sequence[str], block: Sequence[str]
) -> list[GuessedParameter]:
    """Macros and what a template takes; their defaults are values for which the kernel is compiled at all.

    One that nothing defines is threads in an extent of the block, and steps of a thread at the end of a loop.
    """
    parameters = []
    threads = set(WORD.findall(" ".join((*kernel.block, *block))))
    steps = {ast.unparse(test.right) for test in kernel.facts.compared if test.is_loop}
    for macro in tuned:
        item = parameter_of(macro, axes)
        if macro.default is None and macro.name in threads:
            item = threads_parameter(macro.name, axes, "values guessed")
        elif item.values == (1,) and macro.default is None and macro.name in steps:
            item = GuessedParameter(macro.name, (1, 2, 4, 8), 1, "values guessed: a loop ends at it")
        wanted = kernel.wanted.get(item.name)
        chosen = [value for value in item.values if wanted in _written(item.name, value)]
        parameters.append(replace(item, default=chosen[0]) if chosen else item)
    return parameters


def _written(name: str, value: Value) -> tuple[str, ...]:
    """How a condition may write a value of a macro."""
    if isinstance(value, str):
        return (macro_name(name, value),)
    return (str(int(value)) if isinstance(value, bool) else str(value),)


def _without_threads(kernel: FoundKernel, source: Source, axes: Sequence[str]) -> list[str]:
    """The axes along which the kernel reads no thread's index, and the host's block has one thread."""
    if kernel.launch is None:
        return []
    formulas = {**source.host.constants, **kernel.launch.variables}
    extents = zip(axes, kernel.launch.block, strict=False)
    alone = [axis for axis, extent in extents if number_of(extent, formulas) == 1]
    return [axis for axis in alone if not reads_index(kernel.facts, axis, "threadIdx")]


def _invented_block(axes: Sequence[str], taken: Collection[str], alone: Collection[str]) -> tuple[str, ...]:
    """Names for the extents of a block that the source leaves to the launch, 1 for those that are `alone`."""
    open_axes = [axis for axis in axes if axis not in alone]
    names = {axis: f"BLOCK_SIZE_{axis.upper()}" if open_axes[1:] else "BLOCK_SIZE" for axis in open_axes}
    names = {axis: name if name not in taken else f"LAUNCH_{name}" for axis, name in names.items()}
    return tuple(names.get(axis, "1") for axis in axes)


def _placeholder(source: Source) -> GuessedParameter:
    """The parameter of a source that has none, with what to do about it."""
    remark = "the source leaves nothing open: use a macro in it, and list its values"
    if source.fixed:
        remark = f"to tune {', '.join(source.fixed)}, put #ifndef and #endif around each #define"
    return GuessedParameter(PLACEHOLDER, (1,), 1, remark)


def _axes(kernel: FoundKernel) -> list[str]:
    """The axes that a kernel declares or indexes; if it indexes none itself, those of the source."""
    declared = {axis for axis, part in zip("xyz", kernel.block, strict=False) if part != "1"}
    read = kernel.facts
    if not any(reads_index(read, axis, "blockIdx", "threadIdx") for axis in "xyz"):
        functions = kernel.function.source.device_functions
        read = facts([statement for function in functions for statement in function.body], ())
    return [
        axis
        for axis in "xyz"
        if axis == "x" or axis in declared or reads_index(read, axis, "blockIdx", "threadIdx")
    ]


def _block(
    kernel: FoundKernel, source: Source, macros: Sequence[OpenMacro], axes: Sequence[str]
) -> tuple[str, ...]:
    """The declared block if a launch plan can read it, else what indices show.

    Only where they show nothing, as in a kernel that takes any block, a name counts, if the kernel uses it:
    along an axis beside others, one that ends in the axis.
    """
    names = frozenset(macro.name for macro in macros)
    numbers = {name: value for name, value in source.read.constants.items() if name not in names}
    of_host = _host_block(kernel, source, names)
    if of_host and all(of_host):
        return of_host
    declared = declared_extents(kernel.function.block, names, numbers)
    readable = len(declared) == len(kernel.function.block)
    if len(declared) == 3 and readable:
        return declared
    reckoned = [threads_along(axis, kernel.facts) for axis in axes]
    reckoned = [
        ast.unparse(numbers[name]) if name in numbers and name not in names else name for name in reckoned
    ]
    shown = [name for name in reckoned if name in names or (name.isdigit() and name != "1")]
    used = {node.id for node in kernel.facts.expressions if isinstance(node, ast.Name)}
    used |= {
        name
        for variable in kernel.facts.declared.values()
        for extent in variable.extents
        for name in names_in(extent)
    }
    named_block = _block_macros([macro for macro in macros if macro.name in used], axes)
    if shown:
        named = {axis: name for axis, name in zip(axes, named_block, strict=False) if axis_of(name) == axis}
        return tuple(
            name if name in shown else "1" if name else named.get(axis, "1")
            for axis, name in zip(axes, reckoned, strict=True)
        )
    return declared if not named_block and readable and len(axes) == 1 else named_block


def _host_block(kernel: FoundKernel, source: Source, names: Collection[str]) -> tuple[str, ...]:
    """The host's block, with nothing for an extent that is not read; empty if the kernel's own counts."""
    if kernel.launch is None or not kernel.host_block:
        return ()
    formulas = {**source.read.constants, **source.host.constants, **kernel.launch.variables}
    formulas = {name: value for name, value in formulas.items() if name not in names}
    return tuple(next(iter(declared_extents([part], names, formulas)), "") for part in kernel.block)


def _unread_block(kernel: FoundKernel, source: Source, names: Collection[str]) -> str:
    """The first extent of the host's block that is not read; empty if there is none that counts."""
    extents = _host_block(kernel, source, names)
    return next((part for part, extent in zip(kernel.block, extents, strict=False) if not extent), "")


def _block_macros(macros: Sequence[OpenMacro], axes: Sequence[str]) -> tuple[str, ...]:
    """The macros that look like the extents of a block, one for each axis."""
    by_axis = {axis_of(macro.name): macro.name for macro in macros if BLOCK.fullmatch(macro.name)}
    tiles = [macro.name for macro in macros if TILE.fullmatch(macro.name) and axis_of(macro.name) is None]
    if len(axes) > 1 and not by_axis and tiles:
        by_axis = {None: tiles[0]}
    if not by_axis:
        return ()
    return tuple(by_axis.get(axis, by_axis.get(None, "1")) for axis in axes)


def _size_names(kernel: FoundKernel, taken: Iterable[str]) -> tuple[str, ...]:
    """Integer arguments that are named like sizes, or that a thread's index is compared with along an axis.

    Without the former these are those that bound any index, else the first, else n.
    """
    integers = [name for name in kernel.integers if name not in kernel.facts.calls]
    able = [name for name in integers if not is_offset(name, kernel.facts)]
    chosen = [name for name in integers if _SIZE.fullmatch(name)]
    rows = {
        row_length(axis, kernel.facts, able) for axis in "xyz" if not size_along(axis, kernel.facts, able)
    }
    if chosen:
        bounds = {size_along(axis, kernel.facts, able) for axis in "xyz"} | rows
        chosen = [name for name in integers if name in bounds or name in chosen]
    bounding = {ast.unparse(test.right) for test in kernel.facts.compared} | rows
    chosen = chosen or [name for name in integers if name in bounding]
    chosen = chosen or able[:1] or ["n"]
    unusable = {*RESERVED_NAMES, *taken}
    return tuple(name for name in chosen if name not in unusable) or (
        next(name for name in _FREE_NAMES if name not in unusable),
    )


def _guessed(what: str) -> str:
    return f"the {what} is guessed from the kernel's own text, so check it"


def _lack(launch: GuessedLaunch) -> str:
    """What the host's grid lacks: a size, or a parameter that the grid of the kernel's own text has."""
    grid = launch.host.grid if launch.host else ()
    words = set(WORD.findall(" ".join(grid)))
    if not words & {*launch.sizes}:
        return "names no size"
    needed = set(WORD.findall(" ".join(_shown_grid(launch)))) & launch.values.keys()
    left = ", ".join(sorted(needed - words))
    return f"leaves out {left}" if left else ""


def _without_ones(grid: Sequence[str]) -> tuple[str, ...]:
    """A grid without its last axes that have one block."""
    used = [number for number, extent in enumerate(grid) if number == 0 or extent != "1"]
    return tuple(grid[: used[-1] + 1])


def _shown_grid(launch: GuessedLaunch) -> tuple[str, ...]:
    """The grid that the kernel's own text shows: what it says of tiles and sizes first, names second."""
    read = launch.facts
    axes, block, sizes = launch.axes, launch.block, launch.sizes
    along = {axis: size_along(axis, read, sizes) or row_length(axis, read, sizes) for axis in axes}
    left = [name for name in sizes if name not in along.values()] or sizes
    across = next((name for name in left if ACROSS.fullmatch(name)), left[0])
    others = [name for name in left if name != across] or [across]
    tiles = {axis: tile_of(axis, read, block, launch.values, along[axis]) for axis in axes}
    blocked = [axis for axis in axes if reads_index(read, axis, "blockIdx")] or axes

    def blocks(number: int, axis: str) -> str:
        if axis not in blocked:
            return "1"
        if rows := rows_of_blocks(axis, read, sizes):
            return rows
        size = across if number == 0 else others[min(number - 1, len(others) - 1)]
        count = along[axis] or (" * ".join(sizes) if len(axes) == 1 else size)
        tile = tiles[axis] or (block[number] if number < len(block) else "1")
        return f"ceil_div({count}, {tile})" if tile != "1" else count

    return _without_ones([blocks(number, axis) for number, axis in enumerate(axes)])
