"""The operators and functions of the expression language: Python's, with results of bounded size.

The bound holds for whole numbers, texts and lists, because chained derived names could exhaust memory.
"""

from __future__ import annotations

import _ast as ast  # the nodes' classes; the module ast takes longer to import than a look-up takes
import math
import operator
from collections.abc import Callable
from typing import Any

MAX_SIZE = 1024  # bits of a whole number, characters of a text, or items of a list


def ceil_div(dividend: int, divisor: int) -> int:
    """The quotient, rounded up."""
    return -(-dividend // divisor)


def round_up(number: int, multiple: int) -> int:
    """The next multiple."""
    return ceil_div(number, multiple) * multiple


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, str | tuple):
        _check_size(_size(left) + _size(right))
    return left + right


def _multiply(left: Any, right: Any) -> Any:
    if isinstance(left, str | tuple) and isinstance(right, int):
        _check_size(_size(left) * right)
    elif isinstance(right, str | tuple) and isinstance(left, int):
        _check_size(_size(right) * left)
    product = left * right
    if isinstance(product, int):
        _check_size(product.bit_length())
    return product


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, str):  # in Python `%` would format the text
        raise TypeError("a text has no remainder")
    return left % right


def _power(base: Any, exponent: Any) -> Any:
    """A power; for whole numbers, its size of at least (bits - 1) * exponent + 1 bits is checked first."""
    if not isinstance(base, int) or not isinstance(exponent, int):
        return base**exponent
    _check_size((base.bit_length() - 1) * exponent + 1)
    power = base**exponent
    _check_size(power.bit_length() if isinstance(power, int) else 1)
    return power


def _shift_left(number: Any, places: Any) -> Any:
    if isinstance(number, int) and isinstance(places, int):
        _check_size(number.bit_length() + places)
    return number << places


def list_of(*items: Any) -> tuple[Any, ...]:
    """The items as a list; raises ValueError for more than `MAX_SIZE`, inner lists included."""
    _check_size(_size(items))
    return items


def _size(value: Any) -> int:
    """The characters of a text, or the items of a list and its inner lists; 1 for any other value."""
    if isinstance(value, tuple):
        return len(value) + sum(_size(item) for item in value if isinstance(item, tuple))
    return len(value) if isinstance(value, str) else 1


def _check_size(size: int) -> None:
    if size > MAX_SIZE:
        raise ValueError("the result is too large")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "ceil_div": ceil_div,
    "floor": math.floor,
    "gcd": math.gcd,
    "is_power_of_two": _is_power_of_two,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round_up": round_up,
}
TAKEN = {  # number of arguments, of functions that take a fixed number
    **dict.fromkeys(("abs", "ceil", "floor", "is_power_of_two", "log2"), 1),
    **dict.fromkeys(("ceil_div", "round_up"), 2),
}
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: _add,
    ast.Sub: operator.sub,
    ast.Mult: _multiply,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _remainder,
    ast.Pow: _power,
    ast.LShift: _shift_left,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, group: item in group,
    ast.NotIn: lambda item, group: item not in group,
}
