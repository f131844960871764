"""Guess the parts of a first space file for a kernel in Triton: sizes, values, grid and shapes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, product
from math import prod

from autotune.core.expressions import integer, parse, unknown_names
from autotune.core.launch_plan import RESERVED_NAMES, TRITON_OPTIONS, TRITON_TYPES, TRITON_USUAL
from autotune.core.records import Value
from autotune.errors import ExpressionError
from autotune.sources.triton import Dimension, Tile, TritonKernel, names_in_text

DEFAULTS: Mapping[str, Value] = {**TRITON_USUAL, "maxnreg": 255}
_OPTION_VALUES: Mapping[str, tuple[Value, ...]] = {
    "num_warps": (1, 2, 4, 8), "num_stages": (1, 2, 3, 4), "num_ctas": (1,), "maxnreg": (255,)
}  # fmt: skip
_LONG = (256, 512, 1024, 2048, 4096)  # of tiles along one dimension, of two, of more
_FLAT = (16, 32, 64, 128)
_DEEP = (8, 16, 32)
_DOT = (16, 32, 64, 128)  # Triton multiplies matrices of 16 or more rows
_MAX_TILE = 16_384  # elements of a block, which are in registers
_AXES = ("programs", "programs_y", "programs_z")
_LINE = 2**24  # elements of one dimension, of several, of a constant; and of an array, and of all work
_EXTENTS = (4096, 2048, 1024, 512)
_WIDTH, _FEW = 64, 4
_LEAST = 16
_MANY = 10  # configurations
_MAX_DOUBLINGS, _MAX_TRIES = 6, 500  # of extents, and configurations that may be what a source demands
_MAX_ELEMENTS, _MAX_WORK = 2**25, 2**34
_ELEMENT_TYPES = ("float32", "float16", "bfloat16")
_TRIED = (0, 16, 64, 1, 2, 128)  # values of a constant with which a default may compile, the likeliest first


@dataclass(frozen=True)
class TritonAssumptions:
    """What a guess takes for granted where the source does not say it."""

    element_type: str = ""  # of arrays; empty for what their use shows
    index_type: str = "int32"
    are_real: bool = False  # numbers of which nothing shows that they are whole
    constants: Mapping[str, Value] = field(default_factory=dict)  # values of some, in place of usual ones
    made: Mapping[str, str] = field(default_factory=dict)  # element types of some arrays


class TritonGuess:
    """The guessed parts of a space file for a kernel."""

    def __init__(self, kernel: TritonKernel, assumed: TritonAssumptions | None = None) -> None:
        self.kernel, self.assumed = kernel, assumed or TritonAssumptions()
        self._names = {parameter.name for parameter in kernel.parameters}
        self._constants = {constant.name: constant for constant in kernel.constants}

    @cached_property
    def derived(self) -> dict[str, str]:
        """The constants that follow from others."""
        names = {*self._usual_sizes, *self._listed, *self.kernel.heuristics, *self._whole}
        rules = self.kernel.heuristics.items()
        return self._whole | {name: text for name, text in rules if _reads_only(text, names)}

    @cached_property
    def values(self) -> dict[str, tuple[Value, ...]]:
        """The values of each constant and option that is tuned or fixed."""
        rules = self.kernel.heuristics.keys() & self._constants.keys() - self.derived.keys()
        unread = {name: self._usual_values(name) for name in sorted(rules)}
        return {name: own for name, own in (self._listed | unread).items() if name not in self.derived}

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The sizes, at least one, so small that blocks fit registers, and arrays and work are no burden."""
        chosen = {**self._usual_sizes, **self._settled[1]}

        def values() -> dict[str, Value]:
            known: dict[str, Value] = {**self.default, **chosen}
            for name, text in self.derived.items():
                with suppress(ExpressionError):
                    known[name] = parse(text)(known)
            return known

        least = _LEAST if self.kernel.found.has_dot else _FEW

        def halve(names: Collection[str]) -> bool:
            large = (name for name in names if chosen[name] > least)
            widest = max(large, key=lambda name: chosen[name], default="")
            if widest:
                chosen[widest] //= 2
            return bool(widest)

        for block in self.kernel.blocks:
            words = {word for name in block for word in names_in_text(self.derived.get(name, name))}
            read = [name for name in chosen if name in words]
            while read and _largest([block], values()) > _MAX_TILE and halve(read):
                pass
        free = [name for name in chosen if name not in self.fixed]
        while _largest(self.extents.values(), values()) > _MAX_ELEMENTS or prod(chosen.values()) > _MAX_WORK:
            if not halve(free):
                break
        return chosen

    @property
    def types(self) -> list[str]:
        """The constants that are element types under a name which no parameter may have."""
        return sorted(self._constants.keys() & RESERVED_NAMES & self.kernel.found.kinds)

    @cached_property
    def unsure(self) -> set[str]:
        """The constants whose values the source does not list."""
        return {name for name in self.values if name not in TRITON_OPTIONS and not self._is_configured(name)}

    @cached_property
    def extents(self) -> dict[str, list[str]]:
        """The extents of each array; none where the source does not say them."""
        return {array: self._shape(array) for array in self.kernel.roles}

    def shape(self, array: str) -> tuple[Sequence[str], bool]:
        """The extents of an array, and whether the source says them: elements of others may lead anywhere."""
        extents = self.extents[array]
        is_sure = bool(extents) and not any(dimension.is_indirect for dimension in self.kernel.shapes[array])
        return extents or [" * ".join(self.sizes)], is_sure

    def index_bound(self, array: str) -> str:
        """The size that an input's elements stay below as indices; empty where none is known."""
        extents = self.extents[array]
        led = self.kernel.led_into.get(array, ())
        bounds = {self.extents[other][place] if place >= 0 else "" for other, place in led}
        is_drawn = self.kernel.roles[array] == "in" and extents and {*extents} <= {*self.sizes, "1"}
        return bounds.pop() if is_drawn and len(bounds) == 1 and bounds <= self.sizes.keys() else ""

    @cached_property
    def counted(self) -> list[str]:
        """The sizes of which each program takes one, so that few of them are as good as many."""
        return [name for name in self._axis_sizes.values() if name in self.sizes]

    @property
    def landmarks(self) -> list[dict[str, Value]]:
        """The configurations of the autotuner, unless they are many and no more than all combinations."""
        configs = self.kernel.configs
        landmarks = [{**configs[0], **DEFAULTS, **config} for config in configs]
        combinations = prod(len(own) for own in self.values.values())
        distinct = {tuple(landmark.get(name) for name in self.values) for landmark in landmarks}
        return [] if _MANY < len(distinct) == combinations else [*filter(self._holds, landmarks)]

    @cached_property
    def asserted(self) -> list[str]:
        """What the source demands of constants, as far as it reads nothing else."""
        names = {*self.values, *self.fixed}
        return [text for text in dict.fromkeys(self.kernel.found.asserted) if _reads_only(text, names)]

    def _holds(self, config: Mapping[str, Value]) -> bool:
        known = {**self._settled[1], **self.default, **config}
        return all(parse(text).holds(known) for text in self.asserted)

    @property
    def limits(self) -> list[str]:
        """What bounds the tiles of a block that would not fit registers together."""
        return [
            f"{' * '.join(block)} <= {_MAX_TILE}"
            for block in self._blocks
            if prod(int(max(self.values[tile])) for tile in block)
            > _MAX_TILE
            >= prod(int(min(self.values[tile])) for tile in block)
        ]

    @cached_property
    def _blocks(self) -> list[tuple[str, ...]]:
        """The tiles of each block that are chosen freely."""
        free = {name for name in self.values if name in self.kernel.tiles and not self._is_configured(name)}
        free_blocks = (tuple(name for name in block if name in free) for block in self.kernel.blocks)
        return list(dict.fromkeys(block for block in free_blocks if block))

    @cached_property
    def _whole(self) -> dict[str, str]:
        """Tiles of which one has to cover all: the next power of two."""
        return {
            name: f"max(16, {_power(tile.bound)})" if self.kernel.found.has_dot else _power(tile.bound)
            for name, tile in self.kernel.tiles.items()
            if tile.is_whole
            and _reads_only(tile.bound, self._names - {name})
            and not self._is_configured(name)
            and tile.bound not in self.kernel.tiles
        }

    def _is_configured(self, name: str) -> bool:
        return any(name in config for config in self.kernel.configs)

    @cached_property
    def _axis_sizes(self) -> dict[int, str]:
        """What each axis of the grid counts where it has no tiles."""
        sizes = {}
        for axis in range(min(self.kernel.axes, 3)):
            if not any(axis in tile.axes for tile in self.kernel.tiles.values()):
                bound = self.kernel.axis_bounds.get(axis, "")
                sizes[axis] = bound if _reads_only(bound, self._names) else self._free(self._counted(axis))
        return sizes

    def _counted(self, axis: int) -> str:
        """The host's word for the extent of an axis of the grid, if it has one of its own."""
        grids = (launch.grid for launch in self.kernel.launches if len(launch.grid) > axis)
        words = (grid[axis] for grid in grids if grid[axis].isidentifier() and grid[axis] not in self._names)
        return next(words, _AXES[axis])

    def _free(self, name: str) -> str:
        while name in self._names or name in RESERVED_NAMES:
            name += "_"
        return name

    @cached_property
    def fixed(self) -> list[str]:
        """The constants that are sizes of the problem: extents and strides that nobody tunes."""
        kernel = self.kernel
        alone = {name for name, tile in kernel.tiles.items() if tile.is_whole and not tile.bound}
        others = {*TRITON_OPTIONS, *kernel.heuristics, *self._strides_alone, *self._whole}
        others |= kernel.tiles.keys() - alone
        read = self._bounding | self._striding | alone
        return [
            name
            for name, constant in self._constants.items()
            if name in read - others and not constant.has_default and not self._is_configured(name)
        ]

    @cached_property
    def _bounding(self) -> set[str]:
        """The parameters that tiles, axes of the grid or loops end at."""
        kernel = self.kernel
        bounds = (tile.bound for tile in kernel.tiles.values())
        texts = (*bounds, *kernel.axis_bounds.values(), *kernel.ends)
        return {word for text in texts for word in names_in_text(text)}

    @cached_property
    def _striding(self) -> set[str]:
        """The parameters that multiply indices."""
        return {
            name for shape in self.kernel.shapes.values() for dimension in shape for name in dimension.strides
        }

    @cached_property
    def _usual_sizes(self) -> dict[str, int]:
        """The sizes with extents that only their number decides."""
        kernel = self.kernel
        able = (kernel.whole_numbers & (self._bounding | self._striding)) - self._strides_alone
        numbers = [name for name in kernel.numbers if name in able]
        missing = [
            text for text in self._axis_sizes.values() if text not in self._names and text.isidentifier()
        ]
        tiles = kernel.tiles.values()
        if any(map(self._is_unbounded, tiles)):
            missing.append(self._free("n"))
        large = [*numbers, *dict.fromkeys(missing)]
        ends = {word for text in kernel.ends for word in names_in_text(text)}
        counts = ends - kernel.tiles.keys() - {word for tile in tiles for word in names_in_text(tile.bound)}
        fixed = {
            name: self._known_extent(name) or (_FEW if name in counts else _WIDTH) for name in self.fixed
        }
        if len(large) + len(fixed) == 1 and large:
            return {large[0]: _LINE}
        extents = {name: _EXTENTS[min(place, len(_EXTENTS) - 1)] for place, name in enumerate(large)}
        return {**extents, **fixed} or {self._free("n"): 2**20}

    def _known_extent(self, name: str) -> int:
        """An extent that the source compares a size with: it may have code for no other; 0 without one."""
        launched = self.kernel.launched.get(name)
        compared = [launched, *self.kernel.found.choices.get(name, ())]
        return next((value for value in compared if isinstance(value, int) and value > 1), 0)

    def _is_unbounded(self, tile: Tile) -> bool:
        return not tile.is_whole and not _reads_only(tile.bound, self._names - {tile.name})

    @cached_property
    def _strides_alone(self) -> set[str]:
        """The parameters that only multiply indices."""
        kernel = self.kernel
        shapes = kernel.shapes.values()
        strides = {
            dimension.strides[0] for shape in shapes for dimension in shape if len(dimension.strides) == 1
        }
        return strides - self._bounding - kernel.tiles.keys()

    @cached_property
    def _listed(self) -> dict[str, tuple[Value, ...]]:
        """Values for each constant and option: those of the configurations, else usual ones."""
        return dict(self._each_listed())

    def _each_listed(self) -> Iterable[tuple[str, tuple[Value, ...]]]:
        kernel = self.kernel
        tiles = [name for name in kernel.tiles if name not in self.fixed and name not in self._whole]
        needed = {word for shape in self.extents.values() for text in shape for word in names_in_text(text)}
        needed |= {*tiles}
        chosen = {*TRITON_OPTIONS, *kernel.heuristics, *self._usual_sizes, *self._whole, *self.types}
        for name, one in self._constants.items():
            if self._is_configured(name):
                yield name, _distinct(config.get(name) for config in kernel.configs)
            elif name not in chosen and (name in needed or name in kernel.launched or not one.has_default):
                yield name, self._usual_values(name)
        pipelined = (
            kernel.found.has_loop and kernel.found.has_dot
        )  # other loops need a `num_stages` of their own
        usual = () if kernel.configs else ("num_warps", *(("num_stages",) if pipelined else ()))
        for name in TRITON_OPTIONS:
            if any(name in config for config in kernel.configs):
                yield name, _distinct(config.get(name, DEFAULTS[name]) for config in kernel.configs)
            elif name in self._constants or name in usual:
                yield name, _distinct([*_OPTION_VALUES[name], kernel.launched.get(name)])

    def _usual_values(self, name: str) -> tuple[Value, ...]:
        """Values for a constant that the source does not list, that of a launch among them."""
        kernel = self.kernel
        launched = [one[name] for one in (self.assumed.constants, kernel.launched) if name in one]
        if name in kernel.tiles:
            tiles = [one for one in kernel.tiles if one not in self.fixed and one not in self._whole]
            widths = [len(block) for block in kernel.blocks if name in block]
            return _distinct([*self._tile_values(max(widths, default=len(tiles))), *launched])
        if name in self.assumed.constants:
            return (launched[0],)
        if name in kernel.found.kinds:
            return (self._element_type(name),)
        known = kernel.found.choices.get(name, [])
        if name in kernel.found.flags and not any(isinstance(one, str) for one in known):
            known = [False]
        if listed := [*launched, *known]:
            plain = (one for one in listed if not isinstance(one, str) or re.fullmatch(r"\w*", one))
            return (next(plain, 0),)
        if any(name in names_in_text(text) for text in kernel.found.asserted):
            return _DOT
        if name in kernel.whole_numbers or name in kernel.ends:
            return (1,) if name in self._strides_alone else (8,)
        return (1,)

    def _element_type(self, name: str) -> str:
        """The type that a constant stands for: of indices, of sums, or of the arrays."""
        found = self.kernel.found
        if name in found.whole_kinds:
            return "int32"
        return "float32" if name in found.sum_kinds else self.element_type

    @property
    def element_type(self) -> str:
        """What arrays hold."""
        return self.assumed.element_type or self.kernel.element_type

    @property
    def made(self) -> dict[str, str]:
        """The element types of arrays that may differ from what all hold."""
        indices = dict.fromkeys(self.kernel.index_arrays, self.assumed.index_type)
        return {**self.kernel.made, **indices, **self.assumed.made}

    def others(self, complaint: str, reached: Collection[str]) -> Iterator[TritonAssumptions]:
        """Other guesses for a default that does not compile: of what the complaint names first.

        `reached` are the parameters that the place of the complaint depends on.
        """
        words = names_in_text(complaint)
        arrays = [name for name in self.kernel.roles if name in reached and name not in self.kernel.made]
        named = [kind for kind, short in TRITON_TYPES.items() if {kind, short} & words]
        elements = [kind for kind in _ELEMENT_TYPES if kind != self.element_type]
        yield from (TritonAssumptions(element_type=kind) for kind in elements if kind in named)
        each = [arrays, *([name] for name in arrays[:_FEW])] if len(arrays) > 1 else [arrays]
        for kind in dict.fromkeys((*named, "int32") if arrays and named else ()):
            for own in each:
                yield TritonAssumptions(made=dict.fromkeys(own, kind))
        tiles = [name for name in self.unsure if name in self.kernel.tiles]
        if self.kernel.index_arrays:
            yield from (TritonAssumptions(index_type=kind) for kind in ("int64", "uint32"))
        if {*self.kernel.numbers} - self.kernel.whole_numbers:
            yield TritonAssumptions(are_real=True)
        yield from (TritonAssumptions(element_type=kind) for kind in elements if kind not in named)
        for length in _DOT if len(tiles) > 1 else ():
            yield TritonAssumptions(constants=dict.fromkeys(tiles, length))
        launched = self.kernel.launched.keys()
        for name in sorted(self.unsure, key=lambda name: (name in launched, name not in words, name)):
            for value in self._other_values(name):
                yield TritonAssumptions(constants={name: value})

    def _other_values(self, name: str) -> Iterable[Value]:
        """Values that a constant may have as well, though the source does not say so."""
        chosen = self.default[name]
        if name in self.kernel.found.kinds:
            usual: tuple[Value, ...] = _ELEMENT_TYPES
        elif isinstance(chosen, bool):
            usual = (not chosen,)
        elif name in self.kernel.tiles:
            usual = (*_DOT, *self.values[name])
        else:
            usual = (*self.kernel.found.choices.get(name, ()), *_TRIED)
        return [
            value for value in dict.fromkeys(usual) if value != chosen and isinstance(value, type(chosen))
        ]

    def _tile_values(self, count: int) -> tuple[Value, ...]:
        if self.kernel.found.has_dot:
            return _DOT
        return _LONG if count == 1 else _FLAT if count == 2 else _DEEP

    @property
    def default(self) -> dict[str, Value]:
        """A configuration that the source takes."""
        return self._settled[0]

    @cached_property
    def _settled(self) -> tuple[dict[str, Value], dict[str, int]]:
        """A configuration and extents of constants, for which all that is asserted holds if possible."""
        words = {word for text in self.asserted for word in names_in_text(text)}
        names = [name for name in self.values if name in words]
        fixed = {name: self._usual_sizes[name] for name in self.fixed}
        tried = islice(product(*(self.values[name] for name in names)), _MAX_TRIES)
        changes = ({}, *self.kernel.configs, *(dict(zip(names, one, strict=True)) for one in tried))
        for changed in changes:
            config = {name: changed.get(name, value) for name, value in self._preferred.items()}
            for doubled in range(_MAX_DOUBLINGS):
                wide = {name: extent << (doubled if name in words else 0) for name, extent in fixed.items()}
                if all(parse(text).holds({**wide, **config}) for text in self.asserted):
                    return config, wide
        return self._preferred, fixed

    @cached_property
    def _preferred(self) -> dict[str, Value]:
        """The first configuration, a launch's values, else those in the middle whose tiles fit registers."""
        configured = {**self.kernel.launched, **(self.kernel.configs[0] if self.kernel.configs else {})}
        configured |= self.assumed.constants
        chosen = {}
        for name, listed in self.values.items():
            preferred = (one.get(name) for one in (configured, DEFAULTS))
            chosen[name] = next((one for one in preferred if one in listed), listed[(len(listed) - 1) // 2])
        for block in self._blocks:
            while prod(int(chosen[name]) for name in block) > _MAX_TILE // 4:
                largest = max(block, key=lambda name: int(chosen[name]))
                smaller = [value for value in self.values[largest] if value < chosen[largest]]  # type: ignore[operator]
                if not smaller:
                    break
                chosen[largest] = smaller[-1]
        return chosen

    @cached_property
    def launched_grid(self) -> Sequence[str]:
        """The grid of the first launch in the file that is one for every value of its tiles; else empty."""
        names = {*self.sizes, *self.values, *self.derived}
        stepped = {tile.name for tile in self.kernel.tiles.values() if tile.axes} & self.values.keys()
        for grid in (launch.grid for launch in self.kernel.launches):
            read = {word for part in grid for word in names_in_text(part)}
            if len(grid) <= 3 and stepped <= read and all(_reads_only(part, names) for part in grid):
                return grid
        return ()

    @property
    def grid(self) -> Sequence[str]:
        """That of a launch, else what axes and tiles show."""
        extents = []
        for axis in range(min(self.kernel.axes, 3)):
            along = {self._bound(tile): tile for tile in self.kernel.tiles.values() if axis in tile.axes}
            counts = [f"ceil_div({bound}, {tile.name})" for bound, tile in along.items()]
            extents.append(" * ".join(counts) or self._axis_sizes[axis])
        return self.launched_grid or extents

    def _bound(self, tile: Tile) -> str:
        return self._free("n") if self._is_unbounded(tile) else tile.bound

    def _shape(self, array: str) -> list[str]:
        """The extents of an array, one for each dimension."""
        extents: list[str] = []
        for dimension in self.kernel.shapes[array]:
            extent = self._extent(dimension)
            # an axis that is split into several indices counts once
            is_again = extent in extents and not dimension.tiles
            extents.append("1" if is_again else extent)
        return extents

    def _extent(self, dimension: Dimension) -> str:
        tiles = [self.kernel.tiles[name] for name in dimension.tiles if name in self.kernel.tiles]
        parts = [self._bound(tile) if tile.bound or not tile.is_whole else tile.name for tile in tiles]
        covered = {axis for tile in tiles for axis in tile.axes}
        parts += [
            self._axis_sizes[axis]
            for axis in dimension.axes
            if axis in self._axis_sizes and axis not in covered
        ]
        if not tiles:
            parts += [end for end in dimension.loops if _reads_only(end, self._names)]
            bounds = [tile for tile in self.kernel.tiles.values() if {*tile.axes} & {*dimension.axes}]
            parts += [f"ceil_div({self._bound(tile)}, {tile.name})" for tile in bounds]
        if dimension.is_indirect and not parts:
            parts = [next(iter(self._usual_sizes))]
        parts = list(dict.fromkeys(parts))
        return parts[0] if len(parts) == 1 else _product(parts)

    @cached_property
    def strides(self) -> dict[str, tuple[str, str]]:
        """The values of strides, products of the extents behind their own, and the arrays that have these."""
        strides: dict[str, tuple[str, str]] = {}
        for array, shape in self.kernel.shapes.items():
            for place, one in enumerate(shape):
                behind = [part for part in self.extents[array][place + 1 :] if part != "1"]
                if len(one.strides) == 1:
                    strides.setdefault(one.strides[0], (_product(behind), array))
        return {name: one for name, one in strides.items() if name in self._strides_alone}


def _largest(shapes: Iterable[Sequence[str]], values: Mapping[str, Value]) -> int:
    """The most elements that one of some shapes has."""
    largest = 0
    for shape in shapes:
        with suppress(ExpressionError):
            largest = max(largest, prod(integer(parse(part), values) for part in shape))
    return largest


def _product(extents: Iterable[str]) -> str:
    return " * ".join(extent if extent.isidentifier() else f"({extent})" for extent in extents) or "1"


def _power(extent: str) -> str:
    return f"2 ** ceil(log2({extent}))"


def _reads_only(text: str, names: Collection[str]) -> bool:
    """Whether a text is an expression of these names."""
    try:
        return bool(text) and not unknown_names(parse(text), names)
    except ExpressionError:
        return False


def _distinct(values: Iterable[Value | None]) -> tuple[Value, ...]:
    return tuple(
        sorted({value for value in values if value is not None}, key=lambda value: (str(type(value)), value))
    )
