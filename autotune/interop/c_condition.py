"""Translate to C what decides at which sizes a configuration may run, as far as it is plain arithmetic.

That is what `KernelOnDevice.check` leaves unchecked without sizes: constraints, and the bounds of launches.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from autotune.core.expressions import names_behind, parse
from autotune.core.records import Config
from autotune.core.syntax import parse_expression
from autotune.errors import ExpressionError
from autotune.hardware.launch_limits import amounts, conditions, happens, operand
from autotune.serving.validity import KernelOnDevice

ALWAYS, NEVER = "1", "0"
_LONGEST = 2000  # of a text in C: derived names that read each other may double it each time
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_BINARY: Mapping[type[ast.operator] | str, str] = {  # operators and functions of two numbers
    ast.Add: "({0} + {1})",
    ast.Sub: "({0} - {1})",
    ast.Mult: "({0} * {1})",
    ast.FloorDiv: "autotune_floor_div({0}, {1})",
    ast.Mod: "autotune_modulo({0}, {1})",
    "ceil_div": "(-autotune_floor_div(-{0}, {1}))",
    "round_up": "(-autotune_floor_div(-{0}, {1}) * {1})",
    "min": "autotune_min({0}, {1})",
    "max": "(-autotune_min(-{0}, -{1}))",
}
_DIVISIONS = (ast.FloorDiv, ast.Mod, "ceil_div", "round_up")


def condition(kernel: KernelOnDevice, config: Config, registers: int | None, sizes: Sequence[str]) -> str:
    """The C condition on sizes for a configuration to run that may run without them.

    In C, sizes are called `size_NAME`. Raises ExpressionError naming the part that is not plain arithmetic.
    """
    derived = kernel.record.derived
    translator = Translator(kernel.values(config, None), {name: f"size_{name}" for name in sizes})
    for name, text in derived.items():
        if name not in translator.values:
            translator.terms[name] = translator.term(text)
    known = translator.values.keys() | translator.terms.keys()
    parts: dict[str, None] = {}
    for text in _conditions(kernel, registers):
        names = parse(text).names
        # what reads an unknown device is left unchecked, as `best_config` does
        is_unknown = kernel.device is None and not names_behind(names, derived) <= known
        if not (is_unknown or names <= translator.values.keys()):
            parts[translator.truth(parse_expression(text))] = None
    parts.pop(ALWAYS, None)
    return NEVER if NEVER in parts else " && ".join(parts) or ALWAYS


def _conditions(kernel: KernelOnDevice, registers: int | None) -> Iterator[str]:
    """The constraints, that something is launched, and the bounds of each launch unless it is left out."""
    plan = kernel.record.launch
    yield from kernel.record.constraints
    if plan:
        yield " or ".join(f"({happens(step)})" for step in plan)
    for step in plan:
        bounds = [text for amount in amounts(step, kernel.device, registers) for text in amount.bounds]
        for text in (*bounds, *conditions(step, kernel.device)):
            yield text if step.when == "True" else f"not {operand(step.when)} or ({text})"


class Translator(NamedTuple):
    """Translates expressions to C; raises ExpressionError naming the part that is not plain arithmetic."""

    values: Mapping[str, Any]  # of the names that are known at export
    terms: dict[str, str]  # C for the other names; empty where there is none

    def term(self, text: str) -> str:
        """C for a derived name; empty if it is not plain arithmetic."""
        try:
            number = self.number(parse_expression(text))
        except ExpressionError:
            return ""
        return number if len(number) < _LONGEST else ""

    def truth(self, node: ast.expr) -> str:
        """Translate an expression used as a condition: ALWAYS, NEVER, or C."""
        if not self._reads_sizes(node):
            return ALWAYS if self._value(node) else NEVER
        match node:
            case ast.BoolOp(op=connective, values=operands):
                is_or = isinstance(connective, ast.Or)
                decisive, neutral = (ALWAYS, NEVER) if is_or else (NEVER, ALWAYS)
                parts: list[str] = []
                for part in map(self.truth, operands):
                    if part == decisive:
                        return decisive
                    parts += [part] * (part != neutral)
                return f"({(' || ' if is_or else ' && ').join(parts)})" if parts else neutral
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return f"(!{self.truth(inner)})"
            case ast.IfExp():
                return self._chosen(node, self.truth)
        return self.number(node)

    def number(self, node: ast.expr) -> str:
        """Translate an expression used as a whole number."""
        if not self._reads_sizes(node):
            return self._constant(node)
        match node:
            case ast.Name(id=name) if self.terms[name]:
                return self.terms[name]
            case ast.Compare(left=left, ops=signs, comparators=rights) if {*map(type, signs)} <= {*_COMPARE}:
                texts = [*map(self.number, (left, *rights))]
                pairs = zip(texts, signs, texts[1:], strict=False)
                return f"({' && '.join(f'({a} {_COMPARE[type(sign)]} {b})' for a, sign, b in pairs)})"
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()) if _is_condition(node):
                return self.truth(node)
            case ast.IfExp():
                return self._chosen(node, self.number)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return f"(-{self.number(inner)})"
            case ast.BinOp(left=left, op=binary, right=right) if type(binary) in _BINARY:
                return self._binary(type(binary), left, right)
            case ast.Call(func=ast.Name(id=name), args=[one, two]) if name in _BINARY:
                return self._binary(name, one, two)
        raise _refused(node)

    def _chosen(self, node: ast.IfExp, translate: Callable[[ast.expr], str]) -> str:
        decided = self.truth(node.test)
        if decided in (ALWAYS, NEVER):
            return translate(node.body if decided == ALWAYS else node.orelse)
        return f"({decided} ? {translate(node.body)} : {translate(node.orelse)})"

    def _binary(self, operation: type[ast.operator] | str, left_node: ast.expr, right_node: ast.expr) -> str:
        left, right = self.number(left_node), self.number(right_node)
        # a size, and a number that begins with such a digit, are above 0
        if operation in _DIVISIONS and not (right.isidentifier() or right[0] in "123456789"):
            raise _refused(right_node)
        return _BINARY[operation].format(left, right)

    def _reads_sizes(self, node: ast.expr) -> bool:
        return any(isinstance(part, ast.Name) and part.id in self.terms for part in ast.walk(node))

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in self.values:
                return self.values[name]
        return parse(ast.unparse(node))(self.values)

    def _constant(self, node: ast.expr) -> str:
        value = self._value(node)
        if not isinstance(value, int | float) or not abs(value) < 2**63 or value != int(value):
            raise _refused(node)
        return f"({int(value)}LL)" if value < 0 else f"{int(value)}LL"


def _is_condition(node: ast.expr) -> bool:
    """True if the value is true or false: `and` and `or` of numbers give one of these numbers."""
    if isinstance(node, ast.BoolOp):
        return all(map(_is_condition, node.values))
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _refused(node: ast.expr) -> ExpressionError:
    return ExpressionError(f"`{ast.unparse(node)}` is not plain arithmetic of whole numbers")
