"""The value of an expression of whole numbers, as C counts with them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from operator import add, and_, lshift, mul, or_, rshift, sub, xor
from typing import Any

from autotune.core.expression_ops import COMPARE

OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {  # that Python has as C has them
    **{ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.LShift: lshift},
    **{ast.RShift: rshift, ast.BitAnd: and_, ast.BitOr: or_, ast.BitXor: xor},
}
_DEPTH = 8  # of constants, one in another


def number_of(node: ast.expr, constants: Mapping[str, ast.expr], depth: int = _DEPTH) -> int | None:
    """The value of an expression of whole numbers and constants; None if it has others."""
    return value_of(
        node,
        lambda name: (
            number_of(constants[name], constants, depth - 1) if depth and name in constants else None
        ),
    )


def value_of(node: ast.expr, named: Callable[[str], int | None]) -> int | None:
    """The value of an expression, given those of names; None where it depends on what is not known."""
    match node:
        case ast.Constant(value=int(number)):
            return int(number)
        case ast.Name(id=name):
            return named(name)
        case ast.UnaryOp(op=sign, operand=operand):
            value = value_of(operand, named)
            if value is None or isinstance(sign, ast.UAdd):
                return value
            return int(not value) if isinstance(sign, ast.Not) else -value - isinstance(sign, ast.Invert)
        case ast.BoolOp(op=sign, values=parts):  # one side may decide
            sides = [
                None if value is None else bool(value) for value in (value_of(part, named) for part in parts)
            ]
            decisive = isinstance(sign, ast.Or)
            return int(decisive) if decisive in sides else None if None in sides else int(not decisive)
        case ast.IfExp(test=test, body=body, orelse=otherwise):
            chosen = value_of(test, named)
            first, second = value_of(body, named), value_of(otherwise, named)
            return (first if first == second else None) if chosen is None else first if chosen else second
        case ast.Compare(left, [sign], [right]) | ast.BinOp(left, sign, right):
            return _result(sign, value_of(left, named), value_of(right, named))
    return None


def _result(sign: ast.operator | ast.cmpop, left: int | None, right: int | None) -> int | None:
    """The value of an operator of C, whose quotients are cut towards 0."""
    if left is None or right is None:
        return None
    if isinstance(sign, ast.Div | ast.Mod):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if isinstance(sign, ast.Div) else left - quotient * right
    if isinstance(sign, ast.LShift | ast.RShift) and not 0 <= right < 64:
        return None
    if isinstance(sign, ast.cmpop):
        return int(COMPARE[type(sign)](left, right))
    return int(OPERATORS[type(sign)](left, right))
