"""Expressions of space and cache files as C: the same value, or refused with the part that C cannot express.

Whole numbers are `long long`, truth values `int`, fractions `double`; texts are numbers from one table. What
Python would raise sets the flag `*ok` to 0, where and when Python would get there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from autotune.errors import ExpressionError

INTEGER, TRUTH, FRACTION, TEXT = "integer", "truth", "fraction", "text"
C_TYPES = {INTEGER: "long long", TRUTH: "int", FRACTION: "double", TEXT: "int"}

_COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_PLAIN: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_BITS: Mapping[type[ast.operator], str] = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_CHECKED: Mapping[type[ast.operator], str] = {  # helpers of the header, for whole numbers
    ast.FloorDiv: "floor_div",
    ast.Mod: "modulo",
    ast.LShift: "shift_left",
    ast.RShift: "shift_right",
}
# How many arguments a function takes in C: the least and the most.
_ARGUMENTS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("abs", "ceil", "floor", "is_power_of_two", "log2"), (1, 1)),
    **dict.fromkeys(("ceil_div", "gcd", "round_up"), (2, 2)),
    **dict.fromkeys(("max", "min"), (2, 99)),
}


class Term(NamedTuple):
    """A piece of C and the kind of its value."""

    text: str
    kind: str


@dataclass(frozen=True)
class Translator:
    """Turns expressions into C; `names` are terms for the names they may read, `text` numbers a text."""

    names: Mapping[str, Term]
    text: Callable[[str], int]

    def condition(self, text: str) -> str:
        """An expression whose truth counts; raises ExpressionError naming what C cannot express."""
        return self._truth(_tree(text))

    def value(self, text: str) -> Term:
        """An expression whose value counts; raises ExpressionError naming what C cannot express."""
        return self._term(_tree(text))

    def _truth(self, node: ast.expr) -> str:
        match node:
            case ast.BoolOp(op=connective, values=operands):
                symbol = " && " if isinstance(connective, ast.And) else " || "
                return f"({symbol.join(self._truth(operand) for operand in operands)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"(!{self._truth(operand)})"
        term = self._term(node)
        if term.kind == TEXT:
            raise _refused(node, "a text has no truth value in C")
        return term.text if term.kind == TRUTH else f"({term.text} != 0)"

    def _term(self, node: ast.expr) -> Term:
        match node:
            case ast.Constant(value=value):
                return self._constant(value)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute(value=ast.Name(id="device"), attr=attribute):
                return self._name(node, f"device.{attribute}")
            case ast.UnaryOp(op=ast.Not()):
                return Term(self._truth(node), TRUTH)
            case ast.UnaryOp(op=unary, operand=operand):
                inner = self._number(operand)
                symbol = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}[type(unary)]
                kind = INTEGER if inner.kind == TRUTH else inner.kind
                return Term(f"({symbol}({C_TYPES[kind]}){inner.text})", kind)
            case ast.BoolOp():
                return self._connected(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                one, other, kind = self._alike(node, body, orelse)
                return Term(f"({self._truth(test)} ? {one} : {other})", kind)
            case ast.Compare(left=left, ops=comparisons, comparators=rights):
                return self._comparison(node, left, comparisons, rights)
            case ast.BinOp(left=left, op=binary, right=right):
                return self._binary(node, left, binary, right)
            case ast.Call(func=ast.Name(id=function), args=arguments):
                return self._call(node, function, arguments)
        raise _refused(node, "not a value")

    def _constant(self, value: object) -> Term:
        if isinstance(value, bool):
            return Term(str(int(value)), TRUTH)
        if isinstance(value, str):
            return Term(str(self.text(value)), TEXT)
        if isinstance(value, float):
            return Term(repr(value), FRACTION)
        if not isinstance(value, int) or abs(value) >= 2**63:
            raise ExpressionError(f"{value!r} is no number of 64 bits")
        return Term(f"{value}LL", INTEGER)

    def _name(self, node: ast.expr, name: str) -> Term:
        if name not in self.names:
            raise _refused(node, "its value is not known in C")
        return self.names[name]

    def _number(self, node: ast.expr) -> Term:
        term = self._term(node)
        if term.kind == TEXT:
            raise _refused(node, "a text is only compared in C")
        return term

    def _alike(self, node: ast.expr, one: ast.expr, other: ast.expr) -> tuple[str, str, str]:
        """Two values that may stand for each other, and the kind that holds both."""
        first, second = self._term(one), self._term(other)
        if first.kind == second.kind:
            return first.text, second.text, first.kind
        if TEXT in (first.kind, second.kind):
            raise _refused(node, "either a text or a number")
        kind = FRACTION if FRACTION in (first.kind, second.kind) else INTEGER
        return f"({C_TYPES[kind]}){first.text}", f"({C_TYPES[kind]}){second.text}", kind

    def _connected(self, node: ast.BoolOp) -> Term:
        """`a or b` as Python has it: the value of the first that decides."""
        if all(self._term(operand).kind == TRUTH for operand in node.values):
            return Term(self._truth(node), TRUTH)
        first, *rest = node.values
        tail = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        one, other, kind = self._alike(node, first, tail)
        decides = self._truth(first)
        order = (other, one) if isinstance(node.op, ast.And) else (one, other)
        return Term(f"({decides} ? {order[0]} : {order[1]})", kind)

    def _comparison(
        self, node: ast.expr, left: ast.expr, comparisons: list[ast.cmpop], rights: list[ast.expr]
    ) -> Term:
        parts, previous = [], left
        for comparison, right in zip(comparisons, rights, strict=True):
            if isinstance(comparison, ast.In | ast.NotIn):
                if not isinstance(right, ast.Tuple | ast.List):
                    raise _refused(node, "`in` needs a list")
                found = " || ".join(self._equal(previous, item) for item in right.elts) or "0"
                parts.append(f"({found})" if isinstance(comparison, ast.In) else f"(!({found}))")
            elif isinstance(comparison, ast.Eq):
                parts.append(self._equal(previous, right))
            elif isinstance(comparison, ast.NotEq):
                parts.append(f"(!{self._equal(previous, right)})")
            else:
                one, other = self._number(previous), self._number(right)
                parts.append(f"({one.text} {_COMPARE[type(comparison)]} {other.text})")
            previous = right
        return Term(f"({' && '.join(parts)})", TRUTH)

    def _equal(self, left: ast.expr, right: ast.expr) -> str:
        one, other = self._term(left), self._term(right)
        if (one.kind == TEXT) != (other.kind == TEXT):
            return "0"  # a text equals no number
        return f"({one.text} == {other.text})"

    def _binary(self, node: ast.expr, left: ast.expr, binary: ast.operator, right: ast.expr) -> Term:
        one, other = self._number(left), self._number(right)
        is_whole = FRACTION not in (one.kind, other.kind)
        if type(binary) in _PLAIN:
            kind = INTEGER if is_whole else FRACTION
            return Term(f"(({C_TYPES[kind]}){one.text} {_PLAIN[type(binary)]} {other.text})", kind)
        if isinstance(binary, ast.Div):
            return Term(f"autotune_divide({one.text}, {other.text}, ok)", FRACTION)
        if not is_whole:
            raise _refused(node, "C has it for whole numbers only")
        if type(binary) in _BITS:
            return Term(f"((long long){one.text} {_BITS[type(binary)]} {other.text})", INTEGER)
        if type(binary) in _CHECKED:
            return Term(f"autotune_{_CHECKED[type(binary)]}({one.text}, {other.text}, ok)", INTEGER)
        is_constant = isinstance(right, ast.Constant) and isinstance(right.value, int) and right.value >= 0
        if isinstance(binary, ast.Pow) and is_constant:
            return Term(f"autotune_power({one.text}, {other.text})", INTEGER)
        raise _refused(node, "a power in C has a constant, whole exponent")

    def _call(self, node: ast.expr, function: str, arguments: list[ast.expr]) -> Term:
        least, most = _ARGUMENTS[function]
        if not least <= len(arguments) <= most:
            raise _refused(node, f"{function} does not take {len(arguments)} arguments")
        terms = [self._number(argument) for argument in arguments]
        texts, kinds = [term.text for term in terms], {term.kind for term in terms}
        is_whole = FRACTION not in kinds
        match function:
            case "min" | "max":
                kind = INTEGER if is_whole else FRACTION
                text = texts[0]
                for other in texts[1:]:
                    text = f"autotune_{function}_{kind}({text}, {other})"
                return Term(f"(({C_TYPES[kind]}){text})", kind)
            case "abs":
                kind = INTEGER if is_whole else FRACTION
                return Term(f"autotune_abs_{kind}({texts[0]})", kind)
            case "ceil" | "floor":
                return Term(
                    f"((long long){texts[0]})" if is_whole else f"autotune_{function}({texts[0]})", INTEGER
                )
            case "log2":
                return Term(f"autotune_log2({texts[0]}, ok)", FRACTION)
            case "ceil_div" | "round_up" if is_whole:
                return Term(f"autotune_{function}({', '.join(texts)}, ok)", INTEGER)
            case "gcd" if is_whole:
                return Term(f"autotune_gcd({', '.join(texts)})", INTEGER)
            case "is_power_of_two" if is_whole:
                return Term(f"autotune_is_power_of_two({texts[0]})", TRUTH)
        raise _refused(node, "C has it for whole numbers only")


def _tree(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _refused(node: ast.expr, reason: str) -> ExpressionError:
    return ExpressionError(f"`{ast.unparse(node)}` cannot be expressed in C: {reason}")
