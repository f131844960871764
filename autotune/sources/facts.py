"""What the statements of a kernel do: accesses to arrays with their guards, values, comparisons."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any, NamedTuple

from autotune.sources.statements import ADDRESS, LAUNCH, POINTER_CAST, UNREADABLE, Declared, Loop, is_zero

_INLINED = 4  # functions, one in another
_MAX_NODES = 200  # of an expression with the values of its variables
BARRIERS = ("__syncthreads", "barrier", "work_group_barrier", "BARRIER", "sync_threads")
WARP_BARRIERS = ("__syncwarp", "sub_group_barrier")
LOADS = ("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldcv")  # of what their pointer points to
STORES = ("__stwb", "__stcg", "__stcs", "__stwt")
_OF_VECTORS = re.compile(r"v(load|store)(?:a?_half)?(\d*)(?:_rt[ezpn])?")  # in OpenCL: of elements in a row


@dataclass(frozen=True)
class Access:
    """Elements of an array that a statement reads or writes."""

    array: str  # which a pointer may have been made from
    indices: tuple[ast.expr, ...]  # of each of its dimensions, the slowest first
    is_read: bool = False  # its value is read
    is_written: bool = False
    atomic: str = ""  # the atomic function that does it; empty without
    vector: str = ""  # the type of the elements that it is cast to; empty without a cast
    guards: tuple[ast.expr, ...] = ()  # the conditions that hold there
    value: ast.expr | None = None  # what is stored; None for other accesses and for `+=`
    operator: ast.operator | None = None  # that of `+=` and the like

    @property
    def index(self) -> ast.expr:
        """The index of its last dimension."""
        return self.indices[-1]


@dataclass(frozen=True)
class Compared:
    """`left` is compared with `right`, as `<` or `<=`; `is_loop` in the head of a loop."""

    left: ast.expr
    operator: str
    right: ast.expr
    is_loop: bool


@dataclass
class Facts:
    """What a function's statements do.

    Variables have the `values` that they are set to, and those that are `changed` in place, as by `+=`, what
    is added: `raised` has that of sums that run once, `grows` the others without divisions. `equals` are the
    pairs that are asked to be equal, or to differ.
    """

    accesses: list[Access] = field(default_factory=list)  # to arrays, in the order of the text
    values: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    changed: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    raised: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    grows: set[str] = field(default_factory=set)
    compared: list[Compared] = field(default_factory=list)  # sizes, each with the smaller side first
    equals: list[tuple[ast.expr, ast.expr]] = field(default_factory=list)
    asserted: list[ast.expr] = field(default_factory=list)  # by the compiler
    declared: dict[str, Declared] = field(default_factory=dict)
    escaped: list[str] = field(default_factory=list)  # arrays that are passed on to what is not known
    calls: list[str] = field(default_factory=list)  # the names of functions
    loops: list[ast.expr] = field(default_factory=list)  # their heads
    expressions: list[ast.expr] = field(default_factory=list)  # all that are evaluated, also those in others
    pointers: dict[str, str] = field(default_factory=dict)  # the arrays that they were made from
    read_indices: set[str] = field(default_factory=set)  # `threadIdx.x`, `blockDim.y`
    _read: dict[int, tuple[ast.expr, frozenset[str], frozenset[str]]] = field(default_factory=dict)
    _values: dict[str, tuple[ast.expr, int]] = field(default_factory=dict)

    def of(self, array: str) -> list[Access]:
        """The accesses to an array."""
        return [access for access in self.accesses if access.array == array]

    def value(self, name: str) -> ast.expr | None:
        """What a variable is set to, if that is done once and it is not changed."""
        values = self.values.get(name, ())
        return values[0] if len(values) == 1 and name not in self.changed else None

    def read_by(self, node: ast.expr) -> tuple[frozenset[str], frozenset[str]]:
        """The names in an expression, and the arrays that it reads elements of."""
        key = id(node)
        if key not in self._read:
            bases = (
                part.value.id
                for part in ast.walk(node)
                if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name)
            )
            arrays = frozenset(self.pointers.get(base, base) for base in bases)
            self._read[key] = (node, frozenset(names_in(node)), arrays)
        return self._read[key][1:]

    def written_out(self, node: ast.expr) -> ast.expr:
        """An expression with the values of variables in their place, as far as it stays short."""
        return self._with_values(node)[0]

    def _with_values(self, node: ast.expr) -> tuple[ast.expr, int]:
        """The same with the number of nodes that it has then."""
        sizes = 1

        def meaning(part: ast.expr) -> ast.expr:
            nonlocal sizes
            sizes += 1
            if not isinstance(part, ast.Name):
                return part
            written, size = self._value_written(part)
            if sizes + size > _MAX_NODES:
                return part
            sizes += size
            return written

        return substituted(node, meaning), sizes

    def _value_written(self, name: ast.Name) -> tuple[ast.expr, int]:
        if name.id not in self._values:
            self._values[name.id] = (name, 1)  # of a variable that is set to itself
            value = self.value(name.id)
            if value is not None:
                self._values[name.id] = self._with_values(value)
        return self._values[name.id]


def facts(
    body: Iterable[ast.stmt],
    arrays: Collection[str],
    functions: Functions | None = None,
    members: Mapping[str, str] | None = None,
) -> Facts:
    """What statements do that get some arrays; `functions` that only return a value are written out.

    `members` has names for parts of structures: `p.a`, `p.w[0]`.
    """
    reading = _Reading(arrays, functions or {}, members or {})
    reading.block([*body], ())
    return reading.found


_Around = tuple[tuple[ast.expr, ...], tuple[ast.expr, ...]]  # the heads of loops, and conditions


class _Place(NamedTuple):
    """An array, what is added to a pointer to it, and the type that it is cast to."""

    array: str
    added: tuple[ast.expr, ...] = ()
    vector: str = ""


class _Reading:
    """One pass over the statements."""

    def __init__(self, arrays: Collection[str], functions: Functions, members: Mapping[str, str]) -> None:
        self.found = Facts()
        self._arrays = {*arrays}
        self._pointers: dict[str, ast.expr] = {}  # what a pointer was made from
        self._functions, self._members = functions, members
        self._loops: tuple[ast.expr, ...] = ()  # the heads of those around a statement
        self._set_in: dict[str, list[_Around]] = defaultdict(list)  # what is around all that set a variable

    def _of(self, node: ast.expr) -> ast.expr:
        written = inlined(node, self._functions)
        return substituted(written, self._member) if self._members else written

    def _member(self, node: ast.expr) -> ast.expr:
        """The name of a part of a structure; any other expression itself."""
        name = self._members.get(_path(node))
        return ast.Name(name) if name else node

    def _is_structure(self, node: ast.expr) -> bool:
        """True for a structure, or a part of one with parts: its arrays go to what is not known."""
        begins = tuple(f"{_path(node)}{mark}" for mark in ".[") if self._members else ()
        inside = [name for path, name in self._members.items() if path.startswith(begins)]
        self.found.escaped += [name for name in inside if name in self._arrays]
        return bool(inside)

    def block(self, body: Sequence[ast.stmt], guards: tuple[ast.expr, ...]) -> None:
        for statement in body:
            self._statement(statement, guards)
            if isinstance(statement, ast.If) and not statement.orelse and _leaves(statement.body):
                guards = (*guards, ast.UnaryOp(ast.Not(), statement.test))

    def _statement(self, statement: ast.stmt, guards: tuple[ast.expr, ...]) -> None:
        found = self.found
        match statement:
            case ast.AnnAssign(ast.Name(name), ast.Constant(Declared() as declared), value):
                found.declared[name] = declared
                if declared.extents and not declared.is_pointer:
                    self._arrays.add(name)
                if value is not None:
                    self._assigned(name, self._of(value), guards)
            case ast.Assign(targets=[target], value=value):
                target, value = self._of(target), self._of(value)
                if isinstance(target, ast.Name):
                    self._set(target.id, value, guards)
                else:
                    self._expression(value, guards)
                    self._stored(target, guards, value=value)
            case ast.AugAssign(target=target, op=operator, value=value):
                target, value = self._of(target), self._of(value)
                self._expression(value, guards)
                if isinstance(target, ast.Name):
                    signed = ast.UnaryOp(ast.USub(), value) if isinstance(operator, ast.Sub) else value
                    self._changed(target.id, operator, signed, guards)
                    found.expressions.append(ast.BinOp(ast.Name(target.id), operator, value))
                else:
                    self._stored(target, guards, operator=operator, value=value)
            case ast.If(test=test, body=body, orelse=orelse):
                test = self._of(test)
                self._expression(test, guards)
                self.block(body, (*guards, test))
                self.block(orelse, (*guards, ast.UnaryOp(ast.Not(), test)))
            case Loop(before=before, test=test, body=body, step=step):
                for effect in before:
                    self._statement(effect, guards)
                test = self._of(test)
                self._expression(test, guards, is_loop=True)
                found.loops.append(test)
                outer, self._loops = self._loops, (*self._loops, test)
                self.block([*body, *step], (*guards, test))
                self._loops = outer
            case ast.Assert(test=test):
                found.asserted.append(self._of(test))
            case ast.Return(value=value):
                if value is not None:
                    self._expression(self._of(value), guards)
            case ast.Expr(value=value):
                self._expression(self._of(value), guards)

    def _set(self, name: str, value: ast.expr, guards: tuple[ast.expr, ...]) -> None:
        """Note an assignment, which may be a step: `i = i + 2`."""
        match value:
            case ast.BinOp(left=ast.Name(id=same), op=ast.Add(), right=step) if same == name:
                self._expression(value, guards)
                self._changed(name, ast.Add(), step, guards)
            case _:
                self._assigned(name, value, guards)

    def _changed(
        self, name: str, operator: ast.operator, step: ast.expr, guards: tuple[ast.expr, ...]
    ) -> None:
        """Note a change in place, which runs once if every turn of its loops sets the variable before."""
        self.found.changed[name].append(step)
        is_once = any(
            loops == self._loops and before == guards[: len(before)] for loops, before in self._set_in[name]
        )
        if isinstance(operator, ast.Add) and is_once:
            self.found.raised[name].append(step)
        elif not isinstance(operator, ast.Div | ast.RShift):
            self.found.grows.add(name)

    def _assigned(self, name: str, value: ast.expr, guards: tuple[ast.expr, ...]) -> None:
        self._set_in[name].append((self._loops, guards))
        root = self._root(value)
        if root is not None and name not in self._pointers and name not in self._arrays:
            self._pointers[name] = value
            self.found.pointers[name] = root
            self.found.values[name].append(value)
            for part in _indices(value):
                self._expression(part, guards)
            return
        self.found.values[name].append(value)
        self._expression(value, guards)

    def _place(self, value: ast.expr) -> _Place | None:
        """Where in an array an expression points to; None for one that is no pointer."""
        match value:
            case ast.Name(id=name):
                made_from = self._pointers.get(name)
                place = self._place(made_from) if made_from is not None else None
                if made_from is None and name in self._arrays:
                    place = _Place(name)
                return place and place._replace(added=(*place.added, *self.found.changed.get(name, ())))
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operator, right=right):
                if (place := self._place(left)) is not None:
                    is_back = isinstance(operator, ast.Sub)
                    moved = ast.BinOp(ast.Constant(value=0), operator, right) if is_back else right
                    return place._replace(added=(*place.added, moved))
                place = self._place(right)
                return place and place._replace(added=(*place.added, left))
            case ast.Call(func=ast.Name(id="pointer_cast"), args=[ast.Constant(value=kind), inside]):
                place = self._place(inside)
                return place and place._replace(vector=str(kind))
            case ast.Call(func=ast.Name(id="address_of"), args=[ast.Subscript() as inside]):
                access = self._access(inside)
                return None if access is None else _Place(access.array, access.indices, access.vector)
        return None

    def _root(self, value: ast.expr) -> str | None:
        """The array that an expression points into."""
        place = self._place(value)
        return place and place.array

    def _access(self, node: ast.Subscript) -> Access | None:
        """The access of an element, or of a part of one."""
        indices: list[ast.expr] = []
        value: ast.expr = node
        while isinstance(value, ast.Subscript):
            indices.insert(0, value.slice)
            value = value.value
        if (place := self._place(value)) is None:
            return None
        for added in place.added:
            indices[0] = added if is_zero(indices[0]) else ast.BinOp(added, ast.Add(), indices[0])
        return Access(place.array, (*indices,), vector=place.vector)

    def _note(self, access: Access, guards: tuple[ast.expr, ...], **changes: Any) -> None:
        self.found.accesses.append(replace(access, guards=guards, **changes))
        for index in access.indices:
            self._expression(index, guards)

    def _stored(
        self,
        target: ast.expr,
        guards: tuple[ast.expr, ...],
        operator: ast.operator | None = None,
        value: ast.expr | None = None,
    ) -> None:
        is_part = False
        while isinstance(target, ast.Attribute):
            target, is_part = target.value, True
        while isinstance(target, ast.Subscript) and is_part and isinstance(target.value, ast.Attribute):
            target = target.value.value
        if isinstance(target, ast.Name) and target.id not in self._arrays:
            self.found.changed[target.id].append(ast.Name(UNREADABLE))
            self.found.grows.add(target.id)
            return
        access = self._access(target) if isinstance(target, ast.Subscript) else None
        if access is None:
            self._expression(target, guards)
            return
        written = {"value": None if is_part else value, "operator": operator}
        self._note(access, guards, is_read=is_part or operator is not None, is_written=True, **written)

    def _expression(self, node: ast.expr, guards: tuple[ast.expr, ...], *, is_loop: bool = False) -> None:
        found = self.found
        if self._is_structure(node):
            return
        match node:
            case ast.Subscript():
                access = self._access(node)
                if access is not None:
                    self._note(access, guards, is_read=True)
                else:
                    self._expression(node.value, guards)
                    self._expression(node.slice, guards)
                return
            case ast.Name():
                found.expressions.append(node)
                if (root := self._root(node)) is not None:
                    found.escaped.append(root)
                return
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                if isinstance(operator, ast.Lt | ast.GtE):
                    found.compared.append(Compared(left, "<", right, is_loop))
                elif isinstance(operator, ast.LtE):
                    found.compared.append(Compared(left, "<=", right, is_loop))
                    found.compared.append(Compared(right, "<", left, is_loop))
                elif isinstance(operator, ast.Gt):
                    found.compared.append(Compared(right, "<", left, is_loop))
                else:
                    found.equals.append((left, right))
            case ast.BoolOp(op=operator, values=values):
                for value in values:
                    self._expression(value, guards, is_loop=is_loop)
                    guards = (*guards, value) if isinstance(operator, ast.And) else guards
                return
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._expression(test, guards)
                self._expression(body, (*guards, test))
                self._expression(orelse, (*guards, ast.UnaryOp(ast.Not(), test)))
                return
            case ast.Call():
                self._call(node, guards)
                return
            case ast.Attribute(ast.Name("threadIdx" | "blockIdx" | "blockDim" | "gridDim" as kind), axis):
                found.read_indices.add(f"{kind}.{axis}")
        found.expressions.append(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._expression(child, guards)

    def _call(self, node: ast.Call, guards: tuple[ast.expr, ...]) -> None:
        found = self.found
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if isinstance(node.func, ast.Attribute):
            self._expression(node.func.value, guards)
        elif name and name not in (POINTER_CAST, ADDRESS, LAUNCH, UNREADABLE):
            found.calls.append(name)
        given = [*node.args]
        if (named := _OF_VECTORS.fullmatch(name)) and given[1:] and self._root(given[-1]):
            *given, offset, pointer = given
            last = _last_of_vector(offset, int(named[2] or 1))
            access = self._access(ast.Subscript(pointer, last))
            assert access is not None  # as it has a root
            is_read = named[1] == "load"
            self._note(access, guards, is_read=is_read, is_written=not is_read)
        is_atomic = "atomic" in name.lower()
        if given and (is_atomic or name in (*LOADS, *STORES)):
            pointer = given.pop(0)
            access = self._pointed(pointer)
            if access is None:
                self._expression(pointer, guards)
            elif is_atomic:
                self._note(access, guards, is_read=True, is_written=True, atomic=name)
            else:
                value = given[0] if name in STORES and given else None
                self._note(access, guards, is_read=name in LOADS, is_written=name in STORES, value=value)
        for argument in given:
            self._expression(argument, guards)

    def _pointed(self, pointer: ast.expr) -> Access | None:
        """The element that a pointer points to."""
        match pointer:
            case ast.Call(ast.Name("address_of"), [inside]):
                while isinstance(inside, ast.Attribute):
                    inside = inside.value
                return self._access(inside) if isinstance(inside, ast.Subscript) else None
        return self._access(ast.Subscript(pointer, ast.Constant(value=0))) if self._root(pointer) else None


def _last_of_vector(offset: ast.expr, count: int) -> ast.expr:
    """The last element of a vector of `count`, before which there are `offset` others."""
    first = offset if count == 1 or is_zero(offset) else ast.BinOp(offset, ast.Mult(), ast.Constant(count))
    return first if count == 1 else ast.BinOp(first, ast.Add(), ast.Constant(count - 1))


def _path(node: ast.expr) -> str:
    """The way from a variable to a part of it: `p.at.x`, `p.w[0]`; empty for any other expression."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return (path := _path(value)) and f"{path}.{name}"
        case ast.Subscript(value=value, slice=ast.Constant(value=int(number))):
            return (path := _path(value)) and f"{path}[{number}]"
    return ""


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """True if statements end with leaving the function or the turn of a loop."""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Continue | ast.Break)


def _indices(value: ast.expr) -> Iterator[ast.expr]:
    """What is added to a pointer."""
    match value:
        case ast.BinOp(left=left, right=right):
            yield from _indices(left)
            yield from _indices(right)
        case ast.Call(func=ast.Name(id="pointer_cast"), args=[_, inside]):
            yield from _indices(inside)
        case ast.Call(func=ast.Name(id="address_of"), args=[ast.Subscript(slice=index)]):
            yield index
        case ast.Name():
            return
        case _:
            yield value


Functions = Mapping[str, tuple[Sequence[str], Sequence[ast.stmt]]]  # their parameters and statements, by name


def inlined(node: ast.expr, functions: Functions, depth: int = _INLINED) -> ast.expr:
    """An expression with the calls of functions that only return a value written out."""

    def written(part: ast.expr) -> ast.expr:
        if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Name):
            return part
        names, body = functions.get(part.func.id, ((), ()))
        match body:
            case [ast.Return(value=ast.expr() as value)] if len(names) == len(part.args) and depth:
                given = dict(zip(names, part.args, strict=True))
                inside = substituted(
                    value, lambda one: given.get(one.id, one) if isinstance(one, ast.Name) else one
                )
                return inlined(inside, functions, depth - 1)
        return part

    return substituted(node, written) if functions else node


def substituted(node: ast.expr, change: Callable[[ast.expr], ast.expr]) -> ast.expr:
    """An expression with other parts; those that stay are shared."""
    parts: dict[str, Any] = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.expr):
            parts[name] = substituted(value, change)
        elif isinstance(value, list):
            parts[name] = [substituted(one, change) if isinstance(one, ast.expr) else one for one in value]
        else:
            parts[name] = value
    is_same = all(
        parts[name] is value or (isinstance(value, list) and all(map(is_, parts[name], value)))
        for name, value in ast.iter_fields(node)
    )
    return change(node if is_same else type(node)(**parts))


def addends_of(node: ast.expr) -> Iterator[ast.expr]:
    """The parts of a sum; anything else is its own."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from addends_of(left)
            yield from addends_of(right)
        case _:
            yield node


def factors_around(node: ast.expr, index: str) -> Iterator[list[ast.expr]]:
    """For each place of an index or a variable in a sum of products, the factors of its product."""
    match node:
        case ast.Name(id=name) if name == index:
            yield []
        case ast.Attribute() if ast.unparse(node) == index:
            yield []
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            yield from factors_around(left, index)
            yield from factors_around(right, index)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            for factors in factors_around(left, index):
                yield [*factors, right]
            for factors in factors_around(right, index):
                yield [left, *factors]
        case ast.BinOp(left=left, op=ast.LShift(), right=ast.Constant(value=int(bits))) if 0 <= bits < 32:
            for factors in factors_around(left, index):
                yield [*factors, ast.Constant(value=2**bits)]


def names_in(node: ast.AST) -> set[str]:
    """The names that an expression reads."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
