"""Read a file with kernels in Triton: its text in, a description of each kernel out. Nothing of it is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from autotune.core.records import Value
from autotune.core.syntax import parse_expression
from autotune.errors import InputError
from autotune.sources.triton_follower import WHOLE_TYPES
from autotune.sources.triton_host import TritonLaunch, defaults, heuristics, launches
from autotune.sources.triton_module import TritonModule, decorator_name
from autotune.sources.triton_values import NotRead
from autotune.sources.triton_walk import Sum, Term, TritonFindings, walk

_V = TypeVar("_V")


@dataclass(frozen=True)
class TritonParameter:
    """A parameter of a kernel; `is_constant` is for `tl.constexpr`."""

    name: str
    is_constant: bool
    has_default: bool


@dataclass(frozen=True)
class Tile:
    """A constant that is the length of a tile, or what a program or a turn of a loop covers."""

    name: str
    axes: tuple[int, ...]  # the axes of the grid along which tiles lie
    is_looped: bool  # a loop goes from tile to tile
    bound: str  # what the tiles cover, as an expression of parameters; empty if the source does not say it

    @property
    def is_whole(self) -> bool:
        """Whether a single tile covers all."""
        return not self.axes and not self.is_looped


@dataclass(frozen=True)
class Dimension:
    """What runs along one dimension of an array."""

    strides: tuple[str, ...]  # the parameters that multiply its index
    tiles: tuple[str, ...]  # constants that are tiles along it
    axes: tuple[int, ...]  # the axes of the grid along it
    loops: tuple[str, ...]  # where loops along it end, as expressions
    is_indirect: bool  # its index is loaded from another array


@dataclass(frozen=True)
class TritonKernel:
    """What a kernel's source says of it."""

    entry: str
    parameters: Sequence[TritonParameter]  # in the order of the function
    found: TritonFindings  # what its body says of these
    configs: Sequence[Mapping[str, Value]]  # the configurations of its autotuner
    unread: str  # where the list of configurations is, and why it was not read; empty if it was
    heuristics: Mapping[str, str]  # rules for constants; empty for one that is not translated
    launches: Sequence[TritonLaunch]  # those in the file
    host_defaults: Mapping[str, Value]  # numbers that functions of the host have as defaults, by parameter

    @property
    def arguments(self) -> list[str]:
        """What a launch passes: arrays and numbers."""
        return [parameter.name for parameter in self.parameters if not parameter.is_constant]

    @property
    def numbers(self) -> list[str]:
        """The arguments that are no arrays."""
        return [name for name in self.arguments if name not in self.roles]

    @property
    def constants(self) -> list[TritonParameter]:
        """The parameters that a kernel is compiled for."""
        return [parameter for parameter in self.parameters if parameter.is_constant]

    @cached_property
    def _accesses(self) -> list[tuple[str, Sum, str]]:
        """Loads, stores and atomics through parameters: the address and the array of each."""
        others = {"", *self.found.descriptors, *self._counted}
        return [
            (kind, address, array)
            for kind, address in self.found.accesses
            for array in self._arrays(self.found.base(address))
            if array not in others
        ]

    def _arrays(self, array: str) -> list[str]:
        """An array and those that branches have in its place."""
        arrays = {array}
        while more := {name for alike in self.found.alike if alike & arrays for name in alike} - arrays:
            arrays |= more
        return sorted(arrays)

    @property
    def _counted(self) -> set[str]:
        """Parameters that are compared, or added in one branch: numbers, though others load through them."""
        compared = {name for _, bound in self.found.bounds for name in names_in_text(bound.text)}
        return compared | self.found.either

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """in, out or inout for each array."""
        kinds: dict[str, set[str]] = {}
        for kind, _, array in self._accesses:
            kinds.setdefault(array, set()).update({"load": {"in"}, "store": {"out"}}.get(kind, {"in", "out"}))
        names = [parameter.name for parameter in self.parameters if parameter.name in kinds]
        return {name: "inout" if len(kinds[name]) > 1 else next(iter(kinds[name])) for name in names}

    @cached_property
    def shapes(self) -> Mapping[str, tuple[Dimension, ...]]:
        """The dimensions of each array as its widest access has them."""
        every_shape: dict[str, list[tuple[Dimension, ...]]] = {name: [] for name in self.roles}
        for _, address, array in self._accesses:
            if array in every_shape:
                every_shape[array].append(_dimensions(address, array, self.tiles))
        return {
            name: max(shapes, key=lambda shape: (len(shape), sum(len(each.tiles) for each in shape)))
            for name, shapes in every_shape.items()
        }

    @cached_property
    def blocks(self) -> Sequence[tuple[str, ...]]:
        """The tiles along the dimensions of each block that is loaded or stored."""
        blocks = set()
        for _, address, _ in self._accesses:
            along = _dimensions(address, "", self.tiles)
            loaded = {name for term in address.terms for name in term.loaded} & self.roles.keys()
            along += tuple(dimension for name in sorted(loaded) for dimension in self.shapes[name])
            names = [name for dimension in along for name in dimension.tiles if name in self.tiles]
            # an index that is split is one tile; along two axes of the grid there are two
            counts = {name: min(names.count(name), max(1, len(self.tiles[name].axes))) for name in names}
            blocks.add(tuple(sorted(name for name, count in counts.items() for _ in range(count))))
        return tuple(sorted(blocks - {()}))

    @cached_property
    def tiles(self) -> Mapping[str, Tile]:
        """The constants that are tiles: lengths of `arange`, and steps of programs that a loop counts."""
        found = self.found
        covered = {word for ends in found.loops.values() for end in ends for word in names_in_text(end)}
        counted = {name for name in found.steps if name in found.ends - found.tiles - covered}
        stepped = {name for name, ends in found.loops.items() if ends}
        names = {constant.name for constant in self.constants} & (found.tiles | counted | stepped)
        return {name: _tile(name, found) for name in sorted(names)}

    @cached_property
    def axis_bounds(self) -> Mapping[int, str]:
        """What an index along an axis of the grid is compared with, as an expression."""
        bounds: dict[int, str] = {}
        for compared, bound in self.found.bounds:
            axes = {axis for term in compared.terms for axis in term.axes}
            is_plain = not any(
                term.tiles or term.loops or term.loaded or term.factors for term in compared.terms
            )
            if is_plain and len(axes) == 1 and names_in_text(bound.text) and not bound.runs:
                bounds.setdefault(axes.pop(), bound.text)
        return bounds

    @property
    def axes(self) -> int:
        """How many axes of the grid it asks for."""
        return max(self.found.axes, default=0) + 1

    @cached_property
    def ends(self) -> Collection[str]:
        """What loops without tiles end at, as expressions."""
        return {end for term in self._terms for end in term.loops if not term.tiles} - {"?"}

    @cached_property
    def made(self) -> Mapping[str, str]:
        """The element types of arrays that a launch's function makes, where it says them; SAME among them.

        What arrays of whole numbers are made of are whole numbers.
        """
        made = self._of_launches([launch.made for launch in self.launches])
        for array, elements in self.found.stored.items():
            if made.get(array) in WHOLE_TYPES:
                made |= dict.fromkeys(elements - made.keys(), made[array])
        return made

    @cached_property
    def launched(self) -> Mapping[str, Value]:
        """The values that a launch gives to constants and options."""
        values = self._of_launches([launch.constants for launch in self.launches])
        return {name: value for name, value in values.items() if name not in self.arguments}

    def _of_launches(self, places: Sequence[Mapping[int | str, _V]]) -> dict[str, _V]:
        """What launches say of their arguments, by parameter; the first that says something counts."""
        names = [parameter.name for parameter in self.parameters]
        known: dict[str, _V] = {}
        for place, value in (item for one in places for item in one.items()):
            name = place if isinstance(place, str) else names[place] if place < len(names) else ""
            known.setdefault(name, value)
        return known

    @cached_property
    def led_into(self) -> Mapping[str, Collection[tuple[str, int]]]:
        """The arrays that elements of others lead into, each with the dimension that they are indices of."""
        led: dict[str, set[tuple[str, int]]] = {}
        for _, address, array in self._accesses:
            for term in address.terms:
                if len(term.loaded) == 1 and not (term.axes or term.tiles or term.loops):
                    strides = tuple(sorted(name for name in term.factors if name != array))
                    along = [
                        place
                        for place, dimension in enumerate(self.shapes[array])
                        if dimension.strides == strides
                    ]
                    # of no dimension that is known: it may lead anywhere
                    (name,) = term.loaded
                    led.setdefault(name, set()).add((array, along[0] if along else -1))
        return led

    @cached_property
    def index_arrays(self) -> Collection[str]:
        """Arrays whose elements are indices into others."""
        loaded = (name for term in self._terms for name in term.loaded)
        return self.roles.keys() & {*self.found.loaded_indices, *loaded}

    @property
    def _terms(self) -> list[Term]:
        return [term for _, address, _ in self._accesses for term in address.terms]

    @cached_property
    def whole_numbers(self) -> set[str]:
        """Numbers that are used as indices or extents."""
        addressed = {name for term in self._terms for name in term.factors if term.runs}
        bounding = {
            name
            for compared, bound in self.found.bounds
            if any(term.axes or term.tiles or term.loops for term in compared.terms)
            for name in names_in_text(bound.text) | set(bound.factors)
        }
        return (self.found.indices | addressed | bounding) - self.roles.keys()

    @property
    def reals(self) -> Collection[str]:
        """Numbers that meet elements in arithmetic, and not those of index arrays."""
        return {name for name, met in self.found.reals.items() if met.isdisjoint(self.index_arrays)}

    @property
    def computed(self) -> Collection[str]:
        """Arrays whose elements, other than indices, are computed with before they get another type."""
        return (self.found.computed & self.roles.keys()) - {*self.index_arrays}

    @property
    def element_type(self) -> str:
        """What arrays hold: 16 bits for matrices, unless elements go to functions that Triton has for 32."""
        if not self.found.has_dot or not self.found.precise.isdisjoint(self.roles):
            return "float32"
        return "bfloat16" if self.found.short_types == {"bfloat16"} else "float16"


def kernels(text: str, path: Path) -> dict[str, tuple[TritonParameter, ...]]:
    """The parameters of every function under `@triton.jit`, by name; raises InputError."""
    functions = TritonModule(text, path).kernels
    return {name: tuple(parameters(function.args)) for name, function in functions.items()}


def entry_signature(entry: str) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """The kernel that an entry of a launch names, the types of its arguments, and its constants and options.

    Raises SyntaxError or ValueError for another text, as a cache of others may have it.
    """
    match parse_expression(entry):
        case ast.Call(ast.Name(kernel), types, constants):
            kinds = tuple(map(ast.literal_eval, types))
            if all(isinstance(kind, str) for kind in kinds):
                return (
                    kernel,
                    kinds,
                    {constant.arg or "": ast.literal_eval(constant.value) for constant in constants},
                )
    raise ValueError("not a kernel with the types of its arguments")


def read_triton(text: str, path: Path) -> dict[str, TritonKernel]:
    """Every kernel: a function that loads or stores through its parameters, those that hosts launch first.

    A function that is given blocks of elements is a helper, and left out, unless a host launches it.
    Imports are looked for next to the path. Raises InputError for a text that is not Python.
    """
    module = TritonModule(text, path)
    numbers = defaults(module)
    try:
        found_launches = launches(module)
        read = {
            name: _kernel(module, one, found_launches[name], numbers) for name, one in module.kernels.items()
        }
    except RecursionError:
        raise InputError(f"{path}: nested too deeply to be read") from None
    nodes = (node for function in module.kernels.values() for node in ast.walk(function))
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    called = {function.id for function in calls if isinstance(function, ast.Name)}
    able = {
        name: one
        for name, one in read.items()
        if (one.roles or one.found.descriptors) and (one.launches or not one.found.given_blocks)
    }

    def rank(name: str) -> tuple[bool, bool, bool]:
        kernel = able[name]
        return (not (kernel.configs or kernel.unread), not kernel.launches, name in called)

    return {name: able[name] for name in sorted(able, key=rank)}


def element_types(text: str, path: Path, entry: str) -> frozenset[str]:
    """The constants of a kernel that are element types; raises InputError."""
    module = TritonModule(text, path)
    function = module.kernels.get(entry)
    return frozenset() if function is None else frozenset(walk(module, function, ()).kinds)


def _kernel(
    module: TritonModule,
    function: ast.FunctionDef,
    launched: Sequence[TritonLaunch],
    host_defaults: Mapping[str, Value],
) -> TritonKernel:
    taken = tuple(parameters(function.args))
    findings = walk(module, function, {parameter.name for parameter in taken if parameter.is_constant})
    configs = _configs(module, function)
    rules = heuristics(module, function)
    return TritonKernel(function.name, taken, findings, *configs, rules, launched, host_defaults)


def parameters(arguments: ast.arguments) -> Iterator[TritonParameter]:
    """The parameters of a kernel, in its order."""
    positional = [*arguments.posonlyargs, *arguments.args]
    without = [None] * (len(positional) - len(arguments.defaults))
    defaults = [*without, *arguments.defaults, *arguments.kw_defaults]
    for argument, default in zip([*positional, *arguments.kwonlyargs], defaults, strict=True):
        is_constant = argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)
        yield TritonParameter(argument.arg, is_constant, default is not None)


def _tile(name: str, findings: TritonFindings) -> Tile:
    ends = sorted(end for end in findings.loops.get(name, ()) if end and name not in names_in_text(end))
    bounds = [
        bound.text
        for compared, bound in findings.bounds
        if (names := names_in_text(bound.text))
        and name not in names
        and not bound.runs
        and any(name in term.tiles or (term.axes and name in term.factors) for term in compared.terms)
    ]
    axes = tuple(sorted(findings.steps.get(name, ())))
    return Tile(name, axes, name in findings.loops, [*bounds, *ends, ""][0])


def _dimensions(address: Sum, array: str, tiles: Mapping[str, Tile]) -> tuple[Dimension, ...]:
    """The terms of an address by what multiplies them; what nothing multiplies comes last."""
    groups: dict[tuple[str, ...], list[Term]] = {}
    for term in address.terms:
        strides = tuple(sorted(name for name in term.factors if name != array and name not in tiles))
        if term.runs:
            groups.setdefault(strides, []).append(term)
    for strides in list(groups):
        # such as a group of tiles, which are along the same dimension as each of them
        for group in groups:
            if (
                set(group) < set(strides)
                and _axes(groups[strides]) <= _axes(groups[group])
                and not any(term.tiles for term in groups[strides])
            ):
                groups[group] += groups.pop(strides)
                break
    ordered = sorted(groups.items(), key=lambda item: not item[0])
    return tuple(
        Dimension(
            strides,
            _distinct(name for term in terms for name in sorted(term.tiles)),
            _distinct(axis for term in terms for axis in sorted(term.axes)),
            _distinct(end for term in terms for end in sorted(term.loops - {"?"})),
            any(term.loaded for term in terms),
        )
        for strides, terms in ordered
    )


def _axes(terms: Sequence[Term]) -> set[int]:
    return {axis for term in terms for axis in term.axes} or {-1}


def _distinct(items: Iterator[Value]) -> tuple:  # type: ignore[type-arg]
    return tuple(dict.fromkeys(items))


def names_in_text(text: str) -> set[str]:
    """The names that a text of an expression reads."""
    return set(re.findall(r"[A-Za-z_]\w*", text)) - {"ceil_div", "min", "max", "ceil", "log2"}


def _listed_configs(function: ast.FunctionDef) -> ast.expr | None:
    """The list of an autotuner: that of any decorator with `configs` and `key`, or of `autotune`."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call):
            named = {item.arg: item.value for item in decorator.keywords}
            if "configs" in named and ("key" in named or decorator_name(decorator) == "autotune"):
                return named["configs"]
            if decorator_name(decorator) == "autotune" and decorator.args:
                return decorator.args[0]
    return None


def _configs(module: TritonModule, function: ast.FunctionDef) -> tuple[list[dict[str, Value]], str]:
    """The configurations of a kernel, or why they were not read."""
    listed = _listed_configs(function)
    if listed is None:
        return [], ""
    try:
        return module.reader.configs(listed), ""
    except NotRead as error:
        return [], f"{module.path.name}:{listed.lineno}: {error}"
