"""Parse, check and evaluate the expressions of space files.

Text becomes a syntax tree, every node of which must be whitelisted, and the tree becomes nested closures.
`eval` is never used, and the only attributes are `device.NAME`.
"""

from __future__ import annotations

import _ast as ast  # the nodes' classes; the module ast takes longer to import than a look-up takes
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from autotune.core.expression_ops import BINARY, COMPARE, FUNCTIONS, MAX_SIZE, TAKEN, UNARY, list_of
from autotune.core.frozen import dataclass
from autotune.core.records import Value
from autotune.core.syntax import parse_expression
from autotune.errors import ExpressionError

Names = Mapping[str, Any]
Evaluator = Callable[[Names], Any]

_MAX_FLOAT = sys.float_info.max
_MAX_DEPTH = 100  # nested operations; Python's own limit depends on the depth of the caller


@dataclass(frozen=True)
class Expression:
    """A checked expression, called with values; it reads `names`, such as `n` and `device.warp_size`."""

    text: str
    names: frozenset[str]
    _evaluate: Evaluator

    def __call__(self, values: Names) -> Any:
        """Evaluate with the values of names; raises ExpressionError with the reason of a failure."""
        try:
            return self._evaluate(values)
        except KeyError as error:
            raise ExpressionError(f"{self.text!r}: no value for {error.args[0]!r}") from None
        except (ArithmeticError, ValueError, TypeError) as error:
            raise ExpressionError(f"{self.text!r}: {error}") from None

    def holds(self, values: Names) -> bool:
        """True if the expression is true; False also if it cannot be evaluated."""
        try:
            return bool(self(values))
        except ExpressionError:
            return False


@lru_cache(maxsize=4096, typed=True)  # a plan's expressions are evaluated for every configuration
def parse(text: Value) -> Expression:
    """Parse an expression, which may be a plain number or boolean.

    Raises ExpressionError with the part that is not allowed.
    """
    text = str(text).strip()
    return _build(text, _parse_tree(text))


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """Split `a and b and c` into its parts: each can then be evaluated with its own names alone."""
    from ast import unparse

    body = _parse_tree(expression.text)
    if isinstance(body, ast.BoolOp) and isinstance(body.op, ast.And):
        parts = (_build(unparse(part), part) for part in body.values)
        return tuple(piece for part in parts for piece in conjuncts(part))
    return (expression,)


@lru_cache(maxsize=4096)
def operation(expression: Expression) -> tuple[Expression, tuple[Expression, ...]]:
    """Split an expression into its outermost operation and its operands.

    The operation reads its operands by position: `a + b * c` becomes `0 + 1` with the operands `a` and
    `b * c`. A name or value has no operands.
    """
    from ast import iter_fields, unparse

    tree = _parse_tree(expression.text)
    if isinstance(tree, ast.Constant | ast.Name | ast.Attribute):
        return expression, ()
    operands: list[Expression] = []

    def placeholder(node: Any) -> Any:
        if not isinstance(node, ast.expr):  # the operators of a comparison
            return node
        operands.append(parse(unparse(node)))
        return ast.Name(str(len(operands) - 1))

    for field, part in iter_fields(tree):
        if isinstance(part, list):
            setattr(tree, field, [placeholder(node) for node in part])
        elif field != "func":
            setattr(tree, field, placeholder(part))
    return _build(expression.text, tree), tuple(operands)


def integer(expression: Expression, values: Names) -> int:
    """Evaluate to a whole number; raises ExpressionError for any other result."""
    return as_integer(expression(values), expression.text)


def as_integer(result: Any, text: str) -> int:
    """The result of an expression as a whole number; raises ExpressionError for any other."""
    if isinstance(result, float) and result.is_integer():
        result = int(result)
    if isinstance(result, bool) or not isinstance(result, int):
        mend = rounded_up(text) if isinstance(result, float) else ""
        raise ExpressionError(f"{text!r} gives {result!r}, expected a whole number{mend}")
    return result


def at_least(least: int, expression: Expression, values: Names) -> int:
    """Evaluate to a whole number of at least `least`; raises ExpressionError for any other result."""
    result = integer(expression, values)
    if result < least:
        mend = rounded_up(expression.text) if result == 0 else ""
        raise ExpressionError(f"{expression.text!r} gives {result}, expected at least {least}{mend}")
    return result


def rounded_up(text: str) -> str:
    """The fix for a division that gives a fraction or 0, as the end of a message; empty without one."""
    from ast import NodeTransformer, unparse

    class RoundUp(NodeTransformer):
        def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
            self.generic_visit(node)
            if not isinstance(node.op, ast.Div | ast.FloorDiv):
                return node
            return ast.Call(ast.Name("ceil_div"), [node.left, node.right], [])

    tree = _parse_tree(text)
    plain, rounded = unparse(tree), unparse(RoundUp().visit(tree))
    mend = f'; write "{rounded}" to round up' if rounded != plain else ""
    return mend if "//" in text else mend and f"{mend}, or // to round down"


def number(expression: Expression, values: Names) -> int | float:
    """Evaluate to a finite number; raises ExpressionError for any other result."""
    return as_number(expression(values), expression.text)


def as_number(result: Any, text: str) -> int | float:
    """The result of an expression as a finite number; raises ExpressionError for any other."""
    if isinstance(result, bool) or not isinstance(result, int | float) or not abs(result) <= _MAX_FLOAT:
        raise ExpressionError(f"{text!r} gives {result!r}, expected a finite number")
    return result


def unknown_names(expression: Expression, known: Iterable[str]) -> list[str]:
    """The names that an expression reads and `known` lacks, sorted."""
    return sorted(expression.names - set(known))


def names_behind(names: Iterable[str], derived: Mapping[str, str]) -> set[str]:
    """Names, and all names that derived ones among them read, directly or through other derived names."""
    read = set(names)
    for name, text in reversed([*derived.items()]):  # derived names read earlier ones only
        if name in read:
            read |= parse(text).names
    return read


def _parse_tree(text: str) -> ast.expr:
    try:
        return parse_expression(text)
    except SyntaxError:
        raise ExpressionError(f"{text!r} is not an expression") from None


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name in node._fields:
        part = getattr(node, name, None)
        children = part if isinstance(part, list) else [part]
        yield from (child for child in children if isinstance(child, ast.AST))


def _build(text: str, tree: ast.expr) -> Expression:
    names: set[str] = set()
    level: list[ast.AST] = [tree] if len(text) >= _MAX_DEPTH else []  # each level has at least one character
    depth = 0
    while level:
        if depth == _MAX_DEPTH:
            raise ExpressionError("an expression is nested too deeply; split it into derived names")
        level = [child for node in level for child in _children(node)]
        depth += 1
    try:
        evaluate = _compile(tree, names)
    except ExpressionError as error:
        raise ExpressionError(f"{text!r}: {error}") from None
    return Expression(text, frozenset(names), evaluate)


def _compile(node: ast.expr, names: set[str]) -> Evaluator:
    """Turn a whitelisted node into a closure; the names that it reads are added to `names`."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            if isinstance(value, int) and value.bit_length() > MAX_SIZE:
                raise ExpressionError("a number is too large")
            return lambda _: value
        case ast.Name(id=name):
            names.add(name)
            return lambda values: values[name]
        case ast.Attribute(value=ast.Name(id="device"), attr=attribute):
            dotted = f"device.{attribute}"
            names.add(dotted)
            return lambda values: values[dotted]
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            items = [_compile(element, names) for element in elements]
            return lambda values: list_of(*(item(values) for item in items))
        case ast.BoolOp(op=connective, values=operands):
            parts = [_compile(operand, names) for operand in operands]
            return _connect(parts, decisive=isinstance(connective, ast.Or))
        case ast.UnaryOp(op=unary, operand=operand):
            apply, inner = UNARY[type(unary)], _compile(operand, names)
            return lambda values: apply(inner(values))
        case ast.BinOp(op=binary, left=left, right=right) if type(binary) in BINARY:
            combine = BINARY[type(binary)]
            first, second = _compile(left, names), _compile(right, names)
            return lambda values: combine(first(values), second(values))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            condition, yes, no = (_compile(part, names) for part in (test, body, orelse))
            return lambda values: yes(values) if condition(values) else no(values)
        case ast.Compare(left=left, ops=comparisons, comparators=rights):
            return _compile_comparison(left, comparisons, rights, names)
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]) if function in FUNCTIONS:
            if len(arguments) != TAKEN.get(function, len(arguments)):
                raise ExpressionError(_other_count(function, arguments))
            call, inputs = FUNCTIONS[function], [_compile(argument, names) for argument in arguments]
            return lambda values: call(*(item(values) for item in inputs))
    raise ExpressionError(_refusal(node))


def _connect(parts: list[Evaluator], decisive: bool) -> Evaluator:
    """`or` and `and` as in Python: the first operand whose truth value is decisive, else the last."""
    *early, last = parts

    def connect(values: Names) -> Any:
        for part in early:
            result = part(values)
            if bool(result) is decisive:
                return result
        return last(values)

    return connect


def _compile_comparison(
    left: ast.expr, comparisons: list[ast.cmpop], rights: list[ast.expr], names: set[str]
) -> Evaluator:
    operands = [_compile(operand, names) for operand in (left, *rights)]
    if any(type(comparison) not in COMPARE for comparison in comparisons):
        raise ExpressionError("`is` is not allowed; compare with ==")
    tests = [COMPARE[type(comparison)] for comparison in comparisons]
    if len(tests) == 1:  # the usual case, evaluated for every configuration
        test, first, second = tests[0], operands[0], operands[1]
        return lambda values: test(first(values), second(values))

    def compare(values: Names) -> bool:
        previous = operands[0](values)
        for test, operand in zip(tests, operands[1:], strict=True):
            current = operand(values)
            if not test(previous, current):
                return False
            previous = current
        return True

    return compare


def _other_count(function: str, arguments: list[ast.expr]) -> str:
    from ast import unparse

    listed = ", ".join(map(unparse, arguments))
    mend = f"; write ceil_div({listed})" if function == "ceil" and len(arguments) == TAKEN["ceil_div"] else ""
    counts = f"expected {TAKEN[function]}, found {len(arguments)}"
    return f"{function} has a wrong number of arguments: {counts}{mend}"


def _refusal(node: ast.expr) -> str:
    from ast import unparse

    if isinstance(node, ast.Call):
        return f"only these may be called: {', '.join(sorted(FUNCTIONS))}"
    if isinstance(node, ast.Attribute):
        return "the only attributes are those of `device`, such as device.warp_size"
    return f"`{unparse(node)}` is not allowed in an expression"
