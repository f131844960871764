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
from autotune.sources.triton_follower import BITS, UNKNOWN, Follower, Names, NotFollowed, bind
from autotune.sources.triton_module import LOOP_RANGES, RESHAPING, Module, decorator_name

_MOST = 2**31
_MAX_STATEMENTS = 20_000
_SAME = RESHAPING | {"constexpr"}
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


class RangeRun(Follower):
    """Follows one program of a launch."""

    def __init__(self, module: Module, grid: Sequence[int], program: Sequence[int]) -> None:
        super().__init__(module)
        self.overflowing: set[str] = set()  # arrays of which an index does
        self.is_known = True  # False once an address depends on what is not known, such as elements of arrays
        self._grid, self._program = grid, program
        self._left = _MAX_STATEMENTS

    def _statement(self, node: ast.stmt, names: Names, returned: list[Any]) -> bool:
        self._left -= 1
        if self._left < 0:
            raise NotFollowed
        return super()._statement(node, names, returned)

    def _turns(self, node: ast.expr, names: Names) -> _Turns:
        """The variable of a loop in the first two turns and in the last, and the number of the others."""
        given = [self._value(one, names) for one in node.args] if isinstance(node, ast.Call) else []
        ends = [one.low for one in given if isinstance(one, Range) and one.is_one and not one.overflows]
        if len(ends) < max(1, len(given)) or decorator_name(node) not in LOOP_RANGES or 0 in ends[2:3]:
            return _ANY_TURNS
        found, bits = range(*ends[:3]), max(one.bits for one in given)
        return [Range(one, one, bits) for one in (*found[:2], *found[2:][-1:])], len(found) - 3

    def _loop(self, node: ast.For | ast.While, names: Names, returned: list[Any]) -> None:
        """Follow the first two turns of a loop, and the last: before it, values change as in the second."""
        if isinstance(node, ast.For):
            variables, skipped = self._turns(node.iter, names)
        else:
            self._value(node.test, names)
            variables, skipped = _ANY_TURNS
        held = names
        for turn, variable in enumerate(variables):
            if turn == 2:
                for name, old in held.items():
                    names[name] = _carried(old, names[name], skipped)
            held = dict(names)
            if isinstance(node, ast.For):
                bind(node.target, variable, names)
            self._block(node.body, names, returned)

    def _value(self, node: ast.expr, names: Names) -> Any:
        match node:
            case ast.Attribute(base, "T"):
                return self._value(base, names)
        return super()._value(node, names)

    def _number(self, value: Any) -> Any:
        return number(value)

    def _decided(self, value: Any) -> bool | None:
        """A condition that the compiler decides; None for any other."""
        if isinstance(value, Range):
            return bool(value.low) if value.bits == 0 else None
        return None if value is UNKNOWN or isinstance(value, Pointer) else bool(value)

    def _item(self, held: Any, index: ast.expr, names: Names) -> Any:
        if not isinstance(held, tuple):
            return held
        place = self._value(index, names)
        is_in = isinstance(place, Range) and place.is_one and -len(held) <= place.low < len(held)
        return held[place.low] if is_in else UNKNOWN

    def _compared(self, left: Any, operator: ast.cmpop, right: Any) -> Any:
        sides = [one.low if isinstance(one, Range) and one.bits == 0 else one for one in (left, right)]
        if any(one is UNKNOWN or isinstance(one, Range | tuple) for one in sides):
            return UNKNOWN
        if isinstance(operator, ast.Is | ast.IsNot):
            return (sides[0] is sides[1]) == isinstance(operator, ast.Is)
        try:
            return bool(COMPARE[type(operator)](*sides))
        except (KeyError, TypeError):
            return UNKNOWN

    def _unary(self, operator: ast.unaryop, value: Any) -> Any:
        is_sign = isinstance(operator, ast.USub)
        return self._binary(Range(0, 0, 0), ast.Sub(), value) if is_sign else UNKNOWN

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

    def _built_in(self, node: ast.Call, called: str, own: Sequence[Any], named: Mapping[str, Any]) -> Any:
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

    def _joined(self, values: Sequence[Any]) -> Any:
        return _joined(values)

    def _programs(self, called: str, axis: Any) -> Any:
        if not isinstance(axis, Range) or axis.low > 2:
            return UNKNOWN
        found = (self._program if called == "program_id" else self._grid)[axis.low]
        return Range(found, found)


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
