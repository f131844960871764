"""Guess the parts of a first space file: parameters, sizes, arguments and launch geometry.

Every guess is valid in a space file; one that needs a second look carries a remark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.core.launch_plan import RESERVED_NAMES
from autotune.core.records import Value
from autotune.scaffold.extents import IndexBounds, LaunchShape, inlined, not_covered
from autotune.scaffold.guessed_arguments import (
    ACROSS,
    GuessedArgument,
    array_argument,
    array_shape,
    number_value,
    scalar_argument,
    variable_argument,
)
from autotune.scaffold.guessed_parameters import (
    BLOCK,
    TILE,
    WORK,
    GuessedParameter,
    axis_of,
    choice_of_constants,
    divided_sizes,
    least_value,
    parameter_of,
    questioned,
    template_macro,
    threads_parameter,
    within_a_block,
)
from autotune.scaffold.host_grid import host_grid
from autotune.scaffold.macros import WORD, Macro, expand_calls, wanted_values, with_constants
from autotune.scaffold.outcome import Role, is_offset, reference_body, role_of
from autotune.scaffold.reading import FoundKernel, Source
from autotune.scaffold.tiles import INDEXED, is_blocked, rows_of_blocks, size_along, threads_along, tile_of
from autotune.scaffold.verify_sizes import is_checked, strided_sizes, verify_sizes

_SIZE = re.compile(
    r"n|m|k|[nmk]_?\w|w|h|d|len(gth)?|count|num_?\w*|n_\w+|\w*size|width|height|depth|rows?|col(umn)?s?|dim\w*|"
    r"elements|total|limit|end",
    re.IGNORECASE,
)
_OF_THE_LAUNCH = "the source does not use it: it shapes the launch"
_DYNAMIC = re.compile(r"\bextern\s+__shared__\s+(?:__align__\(\d+\)\s*)?([\w\s]+?)\s+\w+\s*\[\s*\]")
_EXTENTS = {1: (16_777_216, 1_048_576), 2: (4096, 512), 3: (256, 64)}  # of each size: on a GPU, on a CPU
_SMALL_EXTENTS = {1: (65_536, 4096), 2: (512, 64), 3: (64, 16)}
_NEIGHBOURS = "reads neighbours: this shape if a guard keeps them inside"
_ROOM, _MORE_ROOM = 8, 1_048_576  # for arrays whose extent nothing shows


@dataclass(frozen=True)
class Guess:
    """The guessed parts of a space file.

    `sizes` has the extents for a GPU and a CPU, `verify_sizes` those of each check.
    `reference` holds the lines of a function's body, none where
    no formula was found. `fixed_macros` have defaults other than numbers. `divided` has the sizes that should
    be multiples of parameters, each with that parameter's name.
    """

    sizes: Mapping[str, tuple[int, int]]
    verify_sizes: tuple[tuple[int, ...], ...]
    parameters: tuple[GuessedParameter, ...]
    divided: tuple[tuple[str, str], ...]
    fixed_macros: tuple[Macro, ...]
    arguments: tuple[GuessedArgument, ...]
    grid: tuple[str, ...]
    block: tuple[str, ...]
    shared_bytes: str
    reference: tuple[str, ...]


def guess(kernel: FoundKernel, source: Source, *, is_small: bool = False, is_roomy: bool = False) -> Guess:
    """Guess the parts of a space file for one kernel of a source.

    `is_small` makes the default one that takes few resources: the least of every parameter's values.
    `is_roomy` gives arrays more room than their indices seem to need, makes sizes smaller and indices 0.
    """
    macros = source.macros
    kernel = replace(kernel, body=expand_calls(source.text, kernel.body))
    axes = _axes(kernel, source.code)
    tuned = [macro for macro in macros if macro.default is None or macro.default.isdigit()]
    tuned += [template_macro(item) for item in kernel.template if not item.choices]
    parameters, block = _parameters_and_block(kernel, source, tuned, axes)
    if is_small:
        parameters = [replace(item, default=least_value(item)) for item in parameters]
    names = _size_names(kernel, {parameter.name for parameter in parameters})
    divided = divided_sizes(kernel.body, names, parameters)
    divisors = {name for _, name in divided}
    parameters = [replace(item, default=1) if item.name in divisors else item for item in parameters]
    roles = {item.name: role_of(item, kernel.body) for item in kernel.arguments if item.is_pointer}
    reference = reference_body(kernel, roles, names)
    grid = _grid(kernel, source, block, axes, names, parameters)
    values = {parameter.name: parameter.values for parameter in parameters}
    checks = _checks(kernel, names, grid, block, values, is_roomy=is_roomy)
    bounds = _index_bounds(kernel, source, grid, block, names, values)
    shapes = {
        item.name: array_shape(item, kernel, source, names, axes, values, bounds)
        for item in kernel.arguments
        if item.is_pointer and not item.symbol
    }
    dimensions = max([len(names), len(axes), *(len(shape) for shape, _ in shapes.values())])
    extents = (_SMALL_EXTENTS if is_roomy else _EXTENTS)[min(3, dimensions)]
    samples = _samples(parameters, [dict.fromkeys(names, one) for one in extents], names, checks)
    shapes = {
        name: _covering(bounds, name, shape, roles[name], samples, block, is_roomy=is_roomy)
        for name, shape in shapes.items()
    }
    return Guess(
        sizes=dict.fromkeys(names, extents),
        verify_sizes=checks,
        parameters=tuple(parameters),
        divided=divided,
        fixed_macros=tuple(macro for macro in macros if macro not in tuned),
        arguments=tuple(
            variable_argument(item, [*names, *(parameter.name for parameter in parameters)])
            if item.symbol
            else array_argument(
                item,
                roles[item.name],
                shapes[item.name],
                kernel.body,
                has_reference=bool(reference),
                is_roomy=is_roomy,
            )
            if item.is_pointer
            else scalar_argument(item, kernel, names, grid)
            for item in kernel.arguments
        ),
        grid=grid,
        block=block,
        shared_bytes=_shared_bytes(kernel, block),
        reference=reference,
    )


def _checks(
    kernel: FoundKernel,
    names: Sequence[str],
    grid: Sequence[str],
    block: Sequence[str],
    values: Mapping[str, tuple[Value, ...]],
    *,
    is_roomy: bool,
) -> tuple[tuple[int, ...], ...]:
    """The sizes to verify, as the bounds checks and the loops of a kernel need them."""
    is_safe = is_checked(kernel.body) and not is_roomy
    strided = strided_sizes(kernel.body, block)
    return verify_sizes(names, grid, block, values, checked=is_safe, strided=strided)


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
    parameters = [within_a_block(item) if item.name in block else item for item in parameters]
    return parameters or [_placeholder(kernel, source)], block


def _parameters(
    kernel: FoundKernel, source: Source, tuned: Sequence[Macro], axes: Sequence[str]
) -> list[GuessedParameter]:
    """Macros and what a template takes; their defaults are values for which the kernel is compiled at all."""
    wanted = wanted_values(source.text, kernel.place)
    defined = [macro.name for macro in tuned if macro.default is not None]
    found = [parameter_of(macro, axes) for macro in tuned]
    found = [item if item.name in defined else questioned(item, defined) for item in found]
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


def _index_bounds(
    kernel: FoundKernel,
    source: Source,
    grid: tuple[str, ...],
    block: tuple[str, ...],
    names: Sequence[str],
    values: Mapping[str, tuple[Value, ...]],
) -> IndexBounds:
    """What bounds the indices of a kernel, with its macros and small functions written out."""
    numbers = {name: text for name, text in source.constants.items() if name not in values}
    for item in kernel.arguments:
        if not item.is_pointer and "int" in item.dtype and item.name not in names:
            numbers[item.name] = number_value(item, kernel, names, grid)
    known = frozenset((*names, *values))
    body = inlined(kernel.body, source.code)
    return IndexBounds(body, LaunchShape(grid, block, known, frozenset(names), numbers))


def _samples(
    parameters: Sequence[GuessedParameter],
    sizes: Sequence[Mapping[str, int]],
    names: Sequence[str],
    checks: Sequence[Sequence[int]],
) -> list[dict[str, Value]]:
    """Values by which extents are compared: all sizes with the default, the least and the largest values."""
    configs = [{item.name: item.default for item in parameters}]
    configs += [{item.name: item.values[place] for item in parameters} for place in (0, -1)]
    every = [*sizes, *(dict(zip(names, one, strict=True)) for one in checks)]
    return [{**config, **one} for config in configs for one in every]


def _covering(
    bounds: IndexBounds,
    array: str,
    guessed: tuple[tuple[str, ...], str],
    role: Role,
    samples: Sequence[Mapping[str, Value]],
    block: Sequence[str],
    *,
    is_roomy: bool,
) -> tuple[tuple[str, ...], str]:
    """A shape that has room for every index whose bound is known: halos and padding need more than sizes."""
    needed, is_complete = bounds.of_array(array)
    if role is Role.LOCAL:
        extent = "1" if needed else " * ".join(("2", *(part for part in block if part != "1")))
        question = "for each block" if needed else "for each block: how many elements?"
    else:
        extent, question = " * ".join(f"({part})" for part in guessed[0]), "as its indices reach"
        if is_roomy:
            return (f"{_ROOM} * ({extent}) + {_MORE_ROOM}",), "room enough, it seems: how many elements?"
    larger = not_covered(needed, extent, samples)
    if not larger:
        if role is Role.LOCAL:
            return (extent,), question
        is_guarded = role is Role.IN and bounds.reads_neighbours(array)
        return guessed[0], _NEIGHBOURS if is_guarded else guessed[1]
    if not is_complete and role is not Role.LOCAL:
        larger = [*larger, extent]
    return (larger[0] if len(larger) == 1 else f"max({', '.join(larger)})",), question


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
    """Integer arguments that are named like sizes, else those that bound an index, else the first, else n."""
    integers = [item.name for item in kernel.arguments if not item.is_pointer and "int" in item.dtype]
    chosen = [name for name in integers if _SIZE.fullmatch(name)]
    chosen = chosen or [name for name in integers if re.search(rf"(?:<|>=)\s*{name}\b", kernel.body)]
    chosen = chosen or [name for name in integers if not is_offset(name, kernel.body)][:1] or ["n"]
    usable = [name for name in chosen if name not in {*RESERVED_NAMES, *taken}]
    return tuple(usable) or ("n",)


def _grid(
    kernel: FoundKernel,
    source: Source,
    block: Sequence[str],
    axes: Sequence[str],
    names: Sequence[str],
    parameters: Sequence[GuessedParameter],
) -> tuple[str, ...]:
    """Blocks along each axis: the host's, unless they leave out a parameter that the kernel's own have."""
    tuned = dict.fromkeys(parameter.name for parameter in parameters)
    fixed = {name: text for name, text in source.constants.items() if name not in tuned}
    shown = _shown_grid(with_constants(kernel.body, fixed), block, axes, names, tuned)
    if kernel.launch is None:
        return shown
    arguments = [argument.name for argument in kernel.arguments]
    grid = host_grid(kernel.launch, arguments, block, {*names, *tuned}, fixed)
    words = set(WORD.findall(" ".join(grid)))
    needed = set(WORD.findall(" ".join(shown))) & tuned.keys()
    return _without_ones(grid) if words & {*names} and needed <= words else shown


def _without_ones(grid: Sequence[str]) -> tuple[str, ...]:
    """A grid without its last axes that have one block."""
    used = [number for number, extent in enumerate(grid) if number == 0 or extent != "1"]
    return tuple(grid[: used[-1] + 1])


def _shown_grid(
    body: str, block: Sequence[str], axes: Sequence[str], names: Sequence[str], known: Collection[str]
) -> tuple[str, ...]:
    """The grid that the kernel's own text shows: what it says of tiles and sizes first, names second."""
    along = {axis: size_along(axis, body, names) for axis in axes}
    left = [name for name in names if name not in along.values()] or names
    across = next((name for name in left if ACROSS.fullmatch(name)), left[0])
    others = [name for name in left if name != across] or [across]
    tiles = {axis: tile_of(axis, body, block, known, along[axis]) for axis in axes}
    blocked = [axis for axis in axes if is_blocked(axis, body)] or axes
    placed = set(WORD.findall(" ".join(tiles.values())))
    work = {axis_of(name) or "x": name for name in known if _is_work(name, body)}
    grid = []
    for number, axis in enumerate(axes):
        if axis not in blocked or (rows := rows_of_blocks(axis, body, names)):
            grid.append("1" if axis not in blocked else rows)
            continue
        size = across if number == 0 else others[min(number - 1, len(others) - 1)]
        if len(axes) == 1:
            size = " * ".join(names)
        threads = block[number] if number < len(block) else "1"
        usual = " * ".join(filter(None, (threads, work.get(axis))))
        if sorted(tiles[axis].split(" * ")) == sorted(usual.split(" * ")):
            per_block = usual
        else:
            per_block = tiles[axis] or (threads if work.get(axis) in placed else usual)
        count = along[axis] or size
        grid.append(f"ceil_div({count}, {per_block})" if per_block != "1" else count)
    return _without_ones(grid)


def _is_work(name: str, body: str) -> bool:
    """Whether a macro of a kernel is the number of elements that each thread computes."""
    return WORK.fullmatch(name) is not None and name in WORD.findall(body)


def _shared_bytes(kernel: FoundKernel, block: Sequence[str]) -> str:
    """Dynamic shared memory: one element for each thread of the block; empty if the kernel has none."""
    match = _DYNAMIC.search(kernel.body)
    if match is None:
        return ""
    size_bytes = 8 if match[1].split()[-1] in ("double", "long", "size_t") else 4
    return " * ".join((str(size_bytes), *(part for part in block if part != "1")))
