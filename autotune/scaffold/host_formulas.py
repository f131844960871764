"""Write what a host passes to a launch as a launch plan does: with sizes, parameters and `ceil_div`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from autotune.core.launch_plan import RESERVED_NAMES
from autotune.scaffold.index_bounds import expression_of
from autotune.sources.facts import Functions, inlined, names_in
from autotune.sources.kernel_source import KernelSource
from autotune.sources.launches import RUNTIME, HostLaunch, functions_of
from autotune.sources.statements import parsed_expression
from autotune.sources.whole_numbers import number_of

_DEPTH = 12  # of variables, one in another
_FUNCTIONS = ("min", "max")
_CEILINGS = ("ceil", "ceilf")
_ROUNDED_UP = re.compile(r"(?i)ceil_?div|div_?(round)?_?up|i_?div_?up|up_?div|div_?ceil|c_?div")
_NO_SIZE = re.compile(  # what is called like a part of a launch or of a device
    r"(?i).*(block|blk|thread|tile|grid|warp|group|wave|processor|occupancy|num_?sms?|sm_?count).*|sms?|tpb"
)
_LIMIT = re.compile(r"(?i).*(max|limit).*")


class _Unreadable(Exception):
    """A part of the host's formula that a launch plan cannot have, unless it has a size for it."""

    def __init__(self, node: ast.expr, *, may_be_size: bool = False) -> None:
        super().__init__(ast.unparse(node))
        self.node, self.may_be_size = node, may_be_size


class KnownNames(NamedTuple):
    """What a launch plan may read, and what names of the source stand for.

    `used` are the names in the kernel's own code: a constant among them is no quantity of the host alone.
    `bytes_of` gives a type's size.
    """

    names: Collection[str]
    constants: Mapping[str, ast.expr]
    used: Collection[str]
    bytes_of: Callable[[str], int | None]


@dataclass(frozen=True)
class HostFormulas:
    """What the host passes to a launch of the kernel, in the words of a launch plan.

    `sizes` are those quantities that shape the grid and that the kernel is not given, by the names that a
    launch plan has for them.
    """

    _launch: HostLaunch
    _reader: _Reader
    _threads: Sequence[tuple[int, str]]  # along each axis: the host's number, or 0, and the launch plan's
    _taken: frozenset[str]  # names that no new size may have
    sizes: Mapping[str, ast.expr] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        launch: HostLaunch,
        host: KernelSource,
        parameters: Sequence[str],
        block: Sequence[str],
        known: KnownNames,
    ) -> HostFormulas:
        """Read the formulas around a launch.

        The kernel's `parameters` are in the order of the launch's arguments. The launch plan has the `block`.
        """
        passed = [*zip(launch.arguments, parameters, strict=False)]
        names = {ast.unparse(here): there for here, there in passed if there in known.names}
        names = {here: there for here, there in names.items() if not here.isdigit()}
        threads = [*zip(launch.block, block, strict=False)]
        names |= {
            here.id: there
            for here, there in threads
            if isinstance(here, ast.Name) and here.id not in known.names
        }
        own = launch.variables.keys() & {*parameters}  # variables of the host, whatever the kernel calls so
        names = {name: name for name in known.names if name not in own} | names
        functions: dict[str, tuple[Sequence[str], Sequence[ast.stmt]]] = {
            function.name: ([item.name for item in function.parameters], function.body)
            for function in host.functions
        }
        functions |= functions_of(launch.variables)
        formulas = {**known.constants, **host.constants, **launch.variables}
        numbers = [(number_of(here, formulas) or 0, there) for here, there in threads]
        constants = {*known.constants, *host.constants}.intersection(known.used)
        fixed = frozenset(constants).union(*(_behind(extent, formulas) for extent in launch.block))
        reader = _Reader(names, launch.block, block, formulas, functions, known.bytes_of, fixed)
        taken = frozenset((*known.names, *known.used, *parameters, *RESERVED_NAMES))
        return cls(launch, reader, numbers, taken)

    @property
    def grid(self) -> tuple[str, ...]:
        """The extents of the grid; empty if one of them needs what a launch plan does not know."""
        texts = [self._text(extent, axis) for axis, extent in enumerate(self._launch.grid)]
        return (*texts,) if all(texts) else ()

    @property
    def unread(self) -> str:
        """The first part of the grid's formulas that a launch plan does not know; empty without one."""
        return str(self._obstacle(self._reader) or "")

    @property
    def shared_bytes(self) -> str:
        """The dynamic shared memory; empty if none is given, or a launch plan cannot read it."""
        return "" if self._launch.shared_bytes is None else self._text(self._launch.shared_bytes)

    def number(self, place: int) -> str:
        """The whole number in a place of the arguments; empty if a launch plan cannot read it."""
        return self._text(self._launch.arguments[place]) if place < len(self._launch.arguments) else ""

    def default(self, size: str) -> int | None:
        """The number that the host has for one of the sizes that only it knows."""
        node = self.sizes[size]
        return number_of(self._reader.formulas.get(ast.unparse(node), node), self._reader.formulas)

    def with_sizes(self) -> HostFormulas:
        """The same with a size for each quantity that shapes the grid; without, if other parts are unread."""
        sizes: dict[str, ast.expr] = {}
        reader = replace(self._reader, wants_sizes=True)
        while why := self._obstacle(reader):
            if not why.may_be_size:
                return self
            name = _free_name(str(why), {*self._taken, *sizes})
            sizes[name] = why.node
            reader = replace(reader, names={**reader.names, str(why): name})
        return replace(self, sizes=sizes, _reader=replace(reader, wants_sizes=False))

    def _obstacle(self, reader: _Reader) -> _Unreadable | None:
        """What keeps a launch plan from having the host's grid."""
        try:
            for extent in self._launch.grid:
                reader.read(extent, _DEPTH)
        except _Unreadable as why:
            return why
        return None

    def _text(self, node: ast.expr, axis: int = 0) -> str:
        threads = self._threads[axis] if axis < len(self._threads) else (0, "")
        try:
            return ast.unparse(replace(self._reader, threads=threads).read(node, _DEPTH))
        except _Unreadable:
            return ""


def _free_name(text: str, taken: Collection[str]) -> str:
    """A name for a quantity of the host, such as `batches` for `shape.batches`."""
    is_member = re.fullmatch(r"[\w.]+", text) is not None
    name = re.sub(r"\W+", "_", text.rpartition(".")[2] if is_member else text).strip("_")
    name = name.partition("__")[0] or name  # of a second variable of that name
    name = name.lower() if name.isupper() else name
    names = (name, f"{name}_count", *(f"{name}_{number}" for number in range(2, 1000)))
    return next(one for one in names if one not in taken)


def declared_extents(
    parts: Sequence[str], known: Collection[str], constants: Mapping[str, ast.expr]
) -> tuple[str, ...]:
    """The extents of a block that a source declares, as a launch plan has them; empty as for a grid."""
    names = {name: name for name in known}
    reader = _Reader(names, (ast.Constant(1),), (), constants, {}, lambda _: None)
    try:
        nodes = [_tree(part, parsed_expression) for part in parts]
        numbers = [number_of(node, constants) for node in nodes]
        return tuple(
            ast.unparse(reader.read(node, _DEPTH)) if number is None else str(number)
            for node, number in zip(nodes, numbers, strict=True)
        )
    except _Unreadable:
        return ()


@dataclass(frozen=True)
class _Reader:
    """Reads the host's formulas as a launch plan has them."""

    names: Mapping[str, str]  # what a part of the host's formulas is called in the launch plan
    host_block: Sequence[ast.expr]
    block: Sequence[str]
    formulas: Mapping[str, ast.expr]  # what variables and constants of the host stand for
    functions: Functions
    bytes_of: Callable[[str], int | None]  # the size of a type
    fixed: frozenset[str] = frozenset()  # names of numbers that are no sizes
    threads: tuple[int, str] = (0, "")  # along an axis: the host's number, and the launch plan's
    wants_sizes: bool = False  # variables and constants that are numbers are no numbers then

    def read(self, node: ast.expr, depth: int) -> ast.expr:
        """What a launch plan has in place of a part of the host's formula."""
        if (name := self.names.get(ast.unparse(node))) is not None:
            return _tree(name)
        match node:
            case ast.Constant(value=int()):
                return node
            case ast.Attribute(ast.Name() as one, "x" | "y" | "z" as axis) if self._is_extents(one):
                return self._extent(one, "xyz".index(axis), depth)
            case ast.Name() | ast.Attribute():
                return self._variable(node, depth)
            case ast.BinOp(left=left, op=ast.Add(), right=right) if rounded := _rounded_up(left, right):
                return self._divided(*rounded, depth, is_rounded_up=True)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._divided(left, right, depth)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as operator, right=right):
                return ast.BinOp(self.read(left, depth), operator, self.read(right, depth))
            case ast.BinOp(left, ast.LShift() | ast.RShift() as shift, ast.Constant(int(bits))) if bits < 32:
                scale = ast.Mult() if isinstance(shift, ast.LShift) else ast.FloorDiv()
                return ast.BinOp(self.read(left, depth), scale, ast.Constant(2**bits))
            case ast.Call(ast.Name("sizeof"), [ast.Constant(str(kind))]) if size := self.bytes_of(kind):
                return ast.Constant(size)
            case ast.Call(ast.Name(name), [ast.BinOp(left, ast.Div(), right)]) if name in _CEILINGS:
                return self._divided(left, right, depth, is_rounded_up=True)
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
                return ast.Call(ast.Name(name), [self.read(item, depth) for item in arguments], [])
            case ast.Call(func=ast.Name(id=name), args=arguments):
                written = inlined(node, self.functions)
                if written is not node and depth:
                    return self.read(written, depth - 1)
                if _ROUNDED_UP.fullmatch(name) and len(arguments) == 2:
                    return self._divided(arguments[0], arguments[1], depth, is_rounded_up=True)
            case ast.Call(ast.Attribute(ast.Name() as one, _), arguments):
                is_plain = all(isinstance(item, ast.Constant) for item in arguments)
                raise _Unreadable(node, may_be_size=is_plain and self._is_own(one))
        raise _Unreadable(node)

    def _variable(self, node: ast.Name | ast.Attribute, depth: int) -> ast.expr:
        """What a variable, a constant or a member stands for; it may be a size if that cannot be read."""
        name, value = ast.unparse(node), self.formulas.get(ast.unparse(node))
        may_be_size = self._is_own(node)
        if value is None or not depth:
            raise _Unreadable(node, may_be_size=may_be_size)
        is_size = self.wants_sizes and may_be_size and not _LIMIT.fullmatch(name)
        if is_size and number_of(value, {}) is not None:
            raise _Unreadable(node, may_be_size=True)
        try:
            return self.read(value, depth - 1)
        except _Unreadable as why:
            if why.may_be_size and not (why.node is value and isinstance(value, ast.Attribute | ast.Call)):
                raise
            is_derived = not self.names.keys().isdisjoint(_behind(value, self.formulas))
            raise _Unreadable(node, may_be_size=may_be_size and not is_derived) from None

    def _is_own(self, node: ast.Name | ast.Attribute) -> bool:
        """True if a quantity may be one of the problem: not of the launch, the kernel or the device."""
        name = ast.unparse(node)
        words = {name, *_behind(node, self.formulas)}
        if _NO_SIZE.fullmatch(name) or not self.fixed.isdisjoint(words):
            return False
        values = [self.formulas[one] for one in words if one in self.formulas]
        calls = [part for one in values for part in ast.walk(one) if isinstance(part, ast.Call)]
        return not any(ast.unparse(one.func).startswith(RUNTIME) for one in calls)

    def _divided(
        self, left: ast.expr, right: ast.expr, depth: int, *, is_rounded_up: bool = False
    ) -> ast.expr:
        """A division of integers; what divides, or is in its formula, is no size."""
        own = self.fixed | _behind(right, self.formulas)
        reader = replace(self, fixed=own, wants_sizes=False)
        divisor, dividend = reader.read(right, depth), replace(self, fixed=own).read(left, depth)
        if is_rounded_up:
            found: ast.expr = ast.Call(ast.Name("ceil_div"), [dividend, divisor], [])
        else:
            found = _quotient(dividend, divisor)
        number, name = self.threads
        match found:
            case ast.Call(function, [one, ast.Constant(value)]) if value == number:
                return ast.Call(function, [one, _tree(name)], [])
            case ast.BinOp(one, ast.FloorDiv(), ast.Constant(value)) if value == number:
                return ast.BinOp(one, ast.FloorDiv(), _tree(name))
        return found

    def _is_extents(self, one: ast.Name) -> bool:
        """True if a variable has three extents."""
        is_block = ast.unparse(one) == ast.unparse(self.host_block[0])
        return is_block or _extents(self.formulas.get(one.id)) is not None

    def _extent(self, one: ast.Name, axis: int, depth: int) -> ast.expr:
        """An extent: that of the launch plan's block if it is one of the host's."""
        extents = _extents(self.formulas.get(one.id))
        if extents is None or [*map(ast.unparse, extents)] == [*map(ast.unparse, self.host_block)]:
            return _tree([*self.block, "1", "1"][axis])
        return self.read(extents[axis], depth)


def _extents(value: ast.expr | None) -> list[ast.expr] | None:
    """The three extents of a `dim3`; None for another value."""
    match value:
        case ast.List(given) | ast.Call(ast.Name("dim3"), given):
            return [*given, *[ast.Constant(1)] * 3][:3]
    return None


def _behind(node: ast.expr, formulas: Mapping[str, ast.expr]) -> frozenset[str]:
    """The names in a formula, and those in what these stand for."""
    found: set[str] = set()
    fresh = names_in(node)
    while fresh:
        found |= fresh
        fresh = {name for one in fresh if one in formulas for name in names_in(formulas[one])} - found
    return frozenset(found)


def _rounded_up(left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """What is divided, and by what, in `(a - 1) / b + 1`; None for another sum."""
    match left, right:
        case ast.BinOp(ast.BinOp(one, ast.Sub(), ast.Constant(1)), ast.Div(), two), ast.Constant(1):
            return one, two
    return None


def _tree(text: str, parse: Callable[[str], ast.expr | None] = expression_of) -> ast.expr:
    tree = parse(text)
    if tree is None:
        raise _Unreadable(ast.Name(text))
    return tree


def _quotient(left: ast.expr, right: ast.expr) -> ast.expr:
    """A division of integers; one of `a + b - 1` by b is rounded up."""
    terms, constant = _terms(left)
    texts, divisor = [ast.unparse(term) for term in terms], ast.unparse(right)
    is_rounded_up = False
    if isinstance(right, ast.Constant) and isinstance(right.value, int):
        is_rounded_up = constant == right.value - 1
    elif divisor in texts:
        del terms[texts.index(divisor)]
        is_rounded_up = constant == -1
    if is_rounded_up and len(terms) == 1:
        return ast.Call(ast.Name("ceil_div"), [terms[0], right], [])
    return ast.BinOp(left, ast.FloorDiv(), right)


def _terms(node: ast.expr) -> tuple[list[ast.expr], int]:
    """The terms of a sum, and the number that is added to them."""
    match node:
        case ast.Constant(value=int(number)):
            return [], number
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            (terms, number), (others, further) = _terms(left), _terms(right)
            return terms + others, number + further
        case ast.BinOp(left=left, op=ast.Sub(), right=ast.Constant(value=int(number))):
            terms, further = _terms(left)
            return terms, further - number
    return [node], 0
