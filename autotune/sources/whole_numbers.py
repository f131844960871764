"""The value of an expression of whole numbers, as C counts with them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from operator import add, and_, eq, ge, gt, le, lt, mul, ne, or_, sub, xor

_OPERATORS: dict[type[ast.AST], Callable[[int, int], int]] = {
    **{ast.BitOr: or_, ast.BitXor: xor, ast.BitAnd: and_, ast.Add: add, ast.Sub: sub, ast.Mult: mul},
    **{ast.Eq: eq, ast.NotEq: ne, ast.Lt: lt, ast.Gt: gt, ast.LtE: le, ast.GtE: ge},
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
                None if value is None else bool(value) for value in (value_of(one, named) for one in parts)
            ]
            decisive = isinstance(sign, ast.Or)
            return int(decisive) if decisive in sides else None if None in sides else int(not decisive)
        case ast.IfExp(test=test, body=body, orelse=other):
            chosen = value_of(test, named)
            first, second = value_of(body, named), value_of(other, named)
            return (first if first == second else None) if chosen is None else first if chosen else second
        case (
            ast.Compare(left=left, ops=[sign], comparators=[right])
            | ast.BinOp(left=left, op=sign, right=right)
        ):
            return _result(sign, value_of(left, named), value_of(right, named))
    return None


def _result(sign: ast.AST, left: int | None, right: int | None) -> int | None:
    """The value of an operator of C, whose quotients are cut towards 0."""
    if left is None or right is None:
        return None
    if isinstance(sign, ast.Div | ast.Mod):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if isinstance(sign, ast.Div) else left - quotient * right
    if isinstance(sign, ast.LShift | ast.RShift):
        if not 0 <= right < 64:
            return None
        return left << right if isinstance(sign, ast.LShift) else left >> right
    return int(_OPERATORS[type(sign)](left, right))
