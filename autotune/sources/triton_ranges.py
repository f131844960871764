"""Follow the whole numbers of one program of a kernel in Triton, from its index and arguments to addresses.

A number is a range if it is one of a tile. Triton counts with 32 bits unless a number is cast to 64, so a
product may overflow. A range that does is marked, and with it all that is made of it. Nothing of the source
is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autotune.core.expression_ops import COMPARE
from autotune.sources.triton_module import LOOP_RANGES, RESHAPING, Module, decorator_name
from autotune.sources.triton_values import NotRead

_MOST = 2**31
_MAX_DEPTH, _MAX_STATEMENTS = 8, 20_000
_SAME = RESHAPING | {"constexpr"}
BITS = {"int32": 32, "int64": 64}
UNKNOWN = object()
Names = dict[str, Any]
_Turns = tuple[Sequence[Any], int | None]
_ANY_TURNS: _Turns = ([UNKNOWN] * 3, None)


@dataclass(frozen=True)
class Range:
    """Whole numbers; those of 0 bits are constants, which take the bits of what they meet."""

    low: int
    high: int
    bits: int = 32
    overflows: bool = False

    @property
    def is_one(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high


@dataclass(frozen=True)
class Pointer:
    """Places in an array."""

    array: str


def number(value: Any, bits: int = 0) -> Any:
    """A constant, or an argument of a number of bits, as this file follows it."""
    return Range(value, value, bits) if type(value) is int else value


class NotFollowed(Exception):
    """The kernel is too large or too deep to follow."""


class RangeRun:
    """Follows one program of a launch."""

    def __init__(self, module: Module, grid: Sequence[int], program: Sequence[int]) -> None:
        self.overflowing: set[str] = set()  # arrays of which an index does
        self.is_known = True  # False once an address depends on what is not known, such as elements of arrays
        self._module, self._grid, self._program = module, grid, program
        self._depth, self._left = 0, _MAX_STATEMENTS

    def run(self, function: ast.FunctionDef, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Follow a function; gives what it returns. Raises NotFollowed."""
        arguments = function.args
        positional = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        names: Names = {}
        for name, default in zip(reversed(positional), reversed(arguments.defaults), strict=False):
            names[name] = self._value(default, {})
        names.update(zip((one for one in positional if one not in named), given, strict=False))
        names.update(named)
        if self._depth == _MAX_DEPTH:
            raise NotFollowed
        self._depth += 1
        returned: list[Any] = []
        self._block(function.body, names, returned)
        self._depth -= 1
        return _joined(returned)

    # statements

    def _block(self, body: Iterable[ast.stmt], names: Names, returned: list[Any]) -> bool:
        """Follow statements; True if none that comes after them runs."""
        return any(self._statement(one, names, returned) for one in body)

    def _statement(self, node: ast.stmt, names: Names, returned: list[Any]) -> bool:
        self._left -= 1
        if self._left < 0:
            raise NotFollowed
        match node:
            case ast.Assign(targets, value):
                found = self._value(value, names)
                for target in targets:
                    _bind(target, found, names)
            case ast.AnnAssign(target, _, ast.expr() as value):
                _bind(target, self._value(value, names), names)
            case ast.AugAssign(ast.Name(name), operator, value):
                names[name] = self._binary(names.get(name, UNKNOWN), operator, self._value(value, names))
            case ast.If(test, then, otherwise):
                return self._branch(self._value(test, names), then, otherwise, names, returned)
            case ast.For(target, turns, body):
                self._loop(target, self._turns(turns, names), body, names, returned)
            case ast.While(test, body):
                self._value(test, names)
                self._loop(None, _ANY_TURNS, body, names, returned)
            case ast.Return(value):
                returned.append(None if value is None else self._value(value, names))
                return True
            case ast.Expr(value):
                self._value(value, names)
        return isinstance(node, ast.Break | ast.Continue)

    def _branch(
        self, test: Any, then: list[ast.stmt], otherwise: list[ast.stmt], names: Names, returned: list[Any]
    ) -> bool:
        if (decided := _decided(test)) is not None:
            return self._block(then if decided else otherwise, names, returned)
        left = []
        for body in (then, otherwise):
            own = dict(names)
            if not self._block(body, own, returned):
                left.append(own)
        for name in {name for own in left for name in own}:
            names[name] = _joined([own.get(name, UNKNOWN) for own in left])
        return not left

    def _turns(self, node: ast.expr, names: Names) -> _Turns:
        """The variable of a loop in the first two turns and in the last, and the number of the others."""
        given = [self._value(one, names) for one in node.args] if isinstance(node, ast.Call) else []
        ends = [one.low for one in given if isinstance(one, Range) and one.is_one and not one.overflows]
        if len(ends) < max(1, len(given)) or decorator_name(node) not in LOOP_RANGES or 0 in ends[2:3]:
            return _ANY_TURNS
        found, bits = range(*ends[:3]), max(one.bits for one in given)
        return [Range(one, one, bits) for one in (*found[:2], *found[2:][-1:])], len(found) - 3

    def _loop(
        self, target: ast.expr | None, turns: _Turns, body: list[ast.stmt], names: Names, returned: list[Any]
    ) -> None:
        """Follow the first two turns of a loop, and the last: before it, values change as in the second."""
        variables, skipped = turns
        held = names
        for turn, variable in enumerate(variables):
            if turn == 2:
                for name, old in held.items():
                    names[name] = _carried(old, names[name], skipped)
            held = dict(names)
            if target is not None:
                _bind(target, variable, names)
            self._block(body, names, returned)

    # expressions

    def _value(self, node: ast.expr, names: Names) -> Any:
        match node:
            case ast.Constant(bool() | int() | float() | str() | None as value):
                return number(value)
            case ast.Name(name):
                return names[name] if name in names else self._global(name)
            case ast.BinOp(left, operator, right):
                return self._binary(self._value(left, names), operator, self._value(right, names))
            case ast.UnaryOp(ast.USub(), operand):
                return self._binary(Range(0, 0, 0), ast.Sub(), self._value(operand, names))
            case ast.UnaryOp(ast.Not(), operand):
                decided = _decided(self._value(operand, names))
                return UNKNOWN if decided is None else not decided
            case ast.BoolOp(operator, parts):
                known = [_decided(self._value(part, names)) for part in parts]
                settling = isinstance(operator, ast.Or)
                return settling if settling in known else UNKNOWN if None in known else not settling
            case ast.Compare(left, [operator], [right]):
                return _compared(self._value(left, names), operator, self._value(right, names))
            case ast.IfExp(test, then, otherwise):
                decided = _decided(self._value(test, names))
                if decided is not None:
                    return self._value(then if decided else otherwise, names)
                return _joined([self._value(then, names), self._value(otherwise, names)])
            case ast.Subscript(base, index):
                held = self._value(base, names)
                if not isinstance(held, tuple):
                    return held
                place = self._value(index, names)
                is_in = isinstance(place, Range) and place.is_one and -len(held) <= place.low < len(held)
                return held[place.low] if is_in else UNKNOWN
            case ast.Tuple(parts) | ast.List(parts):
                return tuple(self._value(part, names) for part in parts)
            case ast.Call():
                return self._call(node, names)
            case ast.Attribute(_, name) if name in BITS:  # such as tl.int64
                return name
            case ast.Attribute(base, "T"):
                return self._value(base, names)
        for part in ast.iter_child_nodes(node):  # a load may be in it
            if isinstance(part, ast.expr) and not isinstance(node, ast.Attribute):
                self._value(part, names)
        return UNKNOWN

    def _global(self, name: str) -> Any:
        try:
            found = self._module.value(name)
        except NotRead:
            return UNKNOWN
        return number(found) if isinstance(found, bool | int | float | str | None) else UNKNOWN

    def _binary(self, left: Any, operator: ast.operator, right: Any) -> Any:
        if isinstance(right, Pointer) and isinstance(operator, ast.Add):
            left, right = right, left
        if isinstance(left, Pointer):
            if isinstance(right, Range):
                if right.overflows:
                    self.overflowing.add(left.array)
            else:
                self.is_known = False
            return left
        if isinstance(left, Range) and isinstance(right, Range):
            return _arithmetic(left, operator, right)
        return UNKNOWN

    def _call(self, node: ast.Call, names: Names) -> Any:
        called = decorator_name(node)
        given = [self._value(one, names) for one in node.args if not isinstance(one, ast.Starred)]
        named = {one.arg: self._value(one.value, names) for one in node.keywords if one.arg}
        if (function := self._module.called(node.func)) is not None:
            outer, self._module = self._module, function[0]
            found = self.run(function[1], given, named)
            self._module = outer
            return found
        base = self._value(node.func.value, names) if isinstance(node.func, ast.Attribute) else UNKNOWN
        own = given if base is UNKNOWN else [base, *given]  # of a function, or of a method
        match called, own, named:
            case (("program_id" | "num_programs"), _, _):
                return self._programs(called, next(iter([*own, *named.values()]), UNKNOWN))
            case "arange", [Range(low=low), Range(high=high)], _:
                return Range(low, high - 1)
            case "cdiv", [Range() as one, Range() as other], _:
                return _arithmetic(replace(one, high=one.high + other.high - 1), ast.FloorDiv(), other)
            case "minimum" | "min" | "maximum" | "max", [Range() as one, Range() as other], _:
                choose = min if called.startswith("min") else max
                ends = choose(one.low, other.low), choose(one.high, other.high)
                return Range(*ends, max(one.bits, other.bits), one.overflows or other.overflows)
            case "where", [_, one, other], _:
                return _joined([one, other])
            case (("to" | "cast"), [Range() as one, *_], _):
                return _cast(one, [*own[1:], *named.values()])
            case "swizzle2d", [_, _, Range(high=tall), Range(high=wide), *_], _:
                return Range(0, tall - 1), Range(0, wide - 1)
            case (("make_block_ptr" | "make_tensor_descriptor"), [*first], _):
                return [*first, named.get("base", UNKNOWN)][0]  # they count with 64 bits
            case (("load" | "store" | "gather" | "scatter"), [one, *_], _) if one is UNKNOWN:
                self.is_known = False
        return own[0] if called in _SAME and own else UNKNOWN

    def _programs(self, called: str, axis: Any) -> Any:
        if not isinstance(axis, Range) or axis.low > 2:
            return UNKNOWN
        found = (self._program if called == "program_id" else self._grid)[axis.low]
        return Range(found, found)


def _bind(target: ast.expr, value: Any, names: Names) -> None:
    match target:
        case ast.Name(name):
            names[name] = value
        case ast.Tuple(parts) | ast.List(parts):
            items = value if isinstance(value, tuple) else (UNKNOWN,) * len(parts)
            for part, item in zip(parts, items, strict=False):
                _bind(part, item, names)


def _decided(value: Any) -> bool | None:
    """A condition that the compiler decides; None for any other."""
    if isinstance(value, Range):
        return bool(value.low) if value.bits == 0 else None
    return None if value is UNKNOWN or isinstance(value, Pointer) else bool(value)


def _compared(left: Any, operator: ast.cmpop, right: Any) -> Any:
    sides = [one.low if isinstance(one, Range) and one.bits == 0 else one for one in (left, right)]
    if any(one is UNKNOWN or isinstance(one, Range | tuple) for one in sides):
        return UNKNOWN
    if isinstance(operator, ast.Is | ast.IsNot):
        return (sides[0] is sides[1]) == isinstance(operator, ast.Is)
    try:
        return bool(COMPARE[type(operator)](*sides))
    except (KeyError, TypeError):
        return UNKNOWN


def _joined(values: Sequence[Any]) -> Any:
    """What may be any of several values."""
    if not values:
        return None
    first, *rest = values
    for one in rest:
        if isinstance(first, Range) and isinstance(one, Range):
            ends = min(first.low, one.low), max(first.high, one.high)
            first = Range(*ends, max(first.bits, one.bits), first.overflows or one.overflows)
        elif isinstance(first, tuple) and isinstance(one, tuple) and len(first) == len(one):
            first = tuple(map(_joined, zip(first, one, strict=True)))
        elif first != one:
            return UNKNOWN
    return first


def _carried(old: Any, new: Any, turns: int | None) -> Any:
    """What further turns of a loop make of a value that each changes as one has; None for any number."""
    if not (isinstance(old, Range) and isinstance(new, Range)) or old == new:
        return _joined([old, new])
    if turns is None:
        return UNKNOWN
    low, high = new.low + turns * (new.low - old.low), new.high + turns * (new.high - old.high)
    return _limited(low, high, [old, new])


def _cast(value: Range, kinds: Iterable[Any]) -> Any:
    bits = next((BITS.get(one, 0) for one in kinds if isinstance(one, str)), 0)
    return _limited(value.low, value.high, [replace(value, bits=bits)]) if bits else UNKNOWN


def _arithmetic(left: Range, operator: ast.operator, right: Range) -> Any:
    corners = [(one, other) for one in (left.low, left.high) for other in (right.low, right.high)]
    match operator:
        case ast.Add():
            found = [one + other for one, other in corners]
        case ast.Sub():
            found = [one - other for one, other in corners]
        case ast.Mult():
            found = [one * other for one, other in corners]
        case ast.FloorDiv() if right.high > 0:
            found = [one // max(1, other) for one, other in corners]
        case ast.Mod() if right.high > 0:
            found = [0 if left.low >= 0 else 1 - right.high, min(max(0, left.high), right.high - 1)]
            if left.is_one and right.is_one:
                found = [left.low % right.low]
        case _:
            return UNKNOWN
    return _limited(min(found), max(found), [left, right])


def _limited(low: int, high: int, made_of: Sequence[Range]) -> Range:
    """A range as its bits hold it."""
    bits = max(one.bits for one in made_of)
    if bits == 32 and any(one.bits == 0 and not -_MOST <= one.low < _MOST for one in made_of):
        bits = 64  # as a constant of more than 32 bits has
    overflows = any(one.overflows for one in made_of)
    if bits == 32 and not -_MOST <= low <= high < _MOST:
        return Range(-_MOST, _MOST - 1, bits, True)
    return Range(low, high, bits, overflows)
