"""Translate to C the conditions on sizes under which a configuration may run.

These are what `best.check` leaves unchecked when it does not know the sizes.

What does not depend on sizes is evaluated here. The rest becomes integer arithmetic on `long long`. Where
Python would raise an error, the C code sets the flag `*ok` to 0.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.core.expressions import parse
from autotune.core.records import Config, DeviceInfo, LaunchSpec, Sizes
from autotune.core.syntax import parse_expression
from autotune.errors import ExpressionError, InputError
from autotune.hardware.launch_limits import amounts, conditions, happens
from autotune.serving.validity import KernelOnDevice

ALWAYS, NEVER = "1", "0"
_FAIL = "autotune_fail(ok)"  # where Python raises
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_BINARY: Mapping[type[ast.operator] | str, str] = {  # operators and functions of two numbers
    ast.Add: "({0} + {1})",
    ast.Sub: "({0} - {1})",
    ast.Mult: "({0} * {1})",
    ast.FloorDiv: "autotune_floor_div({0}, {1}, ok)",
    ast.Mod: "autotune_modulo({0}, {1}, ok)",
    "ceil_div": "(-autotune_floor_div(-{0}, {1}, ok))",
    "round_up": "(-autotune_floor_div(-{0}, {1}, ok) * {1})",
    "min": "autotune_min({0}, {1})",
    "max": "(-autotune_min(-{0}, -{1}))",
}


def condition(
    kernel: KernelOnDevice, config: Config, registers: int | None, sizes: Sequence[str]
) -> str | None:
    """The C condition on sizes for a configuration to run: ALWAYS for all sizes, None for none.

    Args:
        kernel: The kernel on the device that is to run it.
        config: The configuration.
        registers: Per thread; None if unknown.
        sizes: Names of the sizes, which are `size_NAME` in C.

    Raises:
        InputError: C cannot express a part of a constraint, which the message names.
    """
    if kernel.check(config, None, registers).violations:
        return None
    translator = Translator(kernel.values(config, None), {name: f"size_{name}" for name in sizes})
    try:
        parts = dict.fromkeys(_conditions_on_sizes(kernel, registers, translator))
    except ExpressionError as error:
        raise InputError(f"{kernel.record.kernel}: {error}") from None
    parts.pop(ALWAYS, None)
    return None if {NEVER, _FAIL} & parts.keys() else " && ".join(parts) or ALWAYS


def _conditions_on_sizes(
    kernel: KernelOnDevice, registers: int | None, translator: Translator
) -> Iterator[str]:
    """The conditions that depend on sizes, each in C."""
    record, device = kernel.record, kernel.device
    values, terms = translator.values, translator.terms

    def depends_on_sizes(text: str) -> bool:
        names = parse(text).names - values.keys()
        return bool(names) and (device is not None or names <= terms.keys())

    for name, text in record.derived.items():
        if depends_on_sizes(text):
            terms[name] = translator.number(parse_expression(text))
            yield f"({terms[name]} != 0 || 1)" if "ok)" in terms[name] else ALWAYS
    for text in filter(depends_on_sizes, record.constraints):
        yield translator.truth(parse_expression(text))
    for step in record.launch:
        yield _launch_condition(step, device, registers, translator)
    is_launched = " or ".join(f"({happens(step)})" for step in record.launch)
    if is_launched and translator.knows(is_launched):
        yield translator.truth(parse_expression(is_launched))


def same_launches(kernel: KernelOnDevice, config: Config, at: Sizes) -> str:
    """The C condition on sizes for a run to have the launches that it has at the sizes `at`.

    Raises InputError where C cannot express the condition of a launch.
    """
    launched = kernel.launched(config, at)
    values = kernel.values(config, None)
    translator = Translator(values, {name: f"size_{name}" for name in at})
    parts: dict[str, None] = {}
    try:
        for name, text in kernel.record.derived.items():
            if name not in values and translator.knows(text):
                translator.terms[name] = translator.number(parse_expression(text))
        for step, is_there in zip(kernel.record.launch, launched, strict=False):
            if translator.knows(step.when):
                found = translator.truth(parse_expression(step.when))
                parts[found if is_there else f"(!{found})"] = None
    except ExpressionError as error:
        raise InputError(f"{kernel.record.kernel}: {error}") from None
    constant = {ALWAYS, f"(!{NEVER})"}
    return " && ".join(part for part in parts if part not in constant) or ALWAYS


def _launch_condition(
    step: LaunchSpec, device: DeviceInfo | None, registers: int | None, translator: Translator
) -> str:
    """That a launch keeps to its bounds, as far as they are known, or is left out."""
    bounds = [text for amount in amounts(step, device, registers) for text in amount.bounds]
    known = [text for text in (*bounds, *conditions(step, device)) if translator.knows(text)]
    if not known or not translator.knows(step.when):
        return ALWAYS
    kept = " and ".join(f"({text})" for text in known)
    return translator.truth(parse_expression(f"not ({step.when}) or ({kept})"))


@dataclass(frozen=True)
class Translator:
    """Translates expressions to C; `values` are of known names, `terms` are C for names that depend on sizes.

    Raises ExpressionError naming the part that C cannot express.
    """

    values: Mapping[str, Any]
    terms: dict[str, str]

    def knows(self, text: str) -> bool:
        """Whether every name of an expression has a value or a term."""
        return parse(text).names <= self.values.keys() | self.terms.keys()

    def truth(self, node: ast.expr) -> str:
        """Translate an expression used as a condition: ALWAYS, NEVER, or C."""
        if not self._reads_sizes(node):
            try:
                return ALWAYS if parse(ast.unparse(node))(self.values) else NEVER
            except ExpressionError:
                return _FAIL
        if not isinstance(node, ast.BoolOp):
            return self.number(node)
        decisive, neutral = (ALWAYS, NEVER) if isinstance(node.op, ast.Or) else (NEVER, ALWAYS)
        parts = [text for text in map(self.truth, node.values) if text != neutral]
        if len(parts) < 2 or parts[0] in (decisive, _FAIL):
            return parts[0] if parts else neutral
        return f"({(' || ' if decisive == ALWAYS else ' && ').join(parts)})"

    def number(self, node: ast.expr) -> str:
        """Translate an expression used as a whole number."""
        if not self._reads_sizes(node):
            return self._constant(node)
        match node:
            case ast.Name(id=name):
                return self.terms[name]
            case ast.Compare(left=left, ops=comparisons, comparators=rights):
                pairs = zip([left, *rights], comparisons, rights, strict=False)
                return f"({' && '.join(self._compared(*pair) for pair in pairs)})"
            case ast.BoolOp() if _is_condition(node):
                return self.truth(node)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"(!{self.truth(operand)})"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self.number(operand)})"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                decided = self.truth(test)
                if decided in (ALWAYS, NEVER):
                    return self.number(body if decided == ALWAYS else orelse)
                return f"({decided} ? {self.number(body)} : {self.number(orelse)})"
            case ast.BinOp(left=left, op=binary, right=right) if type(binary) in _BINARY:
                return _BINARY[type(binary)].format(self.number(left), self.number(right))
            case ast.Call(func=ast.Name(id=name), args=[one, two]) if name in _BINARY:
                return _BINARY[name].format(self.number(one), self.number(two))
            case ast.Call(
                func=ast.Name(id="ceil" | "floor" as rounding),
                args=[ast.Call(func=ast.Name(id="log2"), args=[argument])],
            ):
                return f"autotune_{rounding}_log2({self.number(argument)}, ok)"
        raise _refused(node)

    def _compared(self, left: ast.expr, comparison: ast.cmpop, right: ast.expr) -> str:
        one = self.number(left)
        if symbol := _COMPARE.get(type(comparison)):
            return f"({one} {symbol} {self.number(right)})"
        if not isinstance(right, ast.Tuple | ast.List):
            raise _refused(right)
        found = " | ".join(f"({one} == {self.number(item)})" for item in right.elts) or NEVER
        return f"({found})" if isinstance(comparison, ast.In) else f"(!({found}))"

    def _reads_sizes(self, node: ast.expr) -> bool:
        return bool(parse(ast.unparse(node)).names & self.terms.keys())

    def _constant(self, node: ast.expr) -> str:
        try:
            value = parse(ast.unparse(node))(self.values)
        except ExpressionError:
            return _FAIL
        if value is None:  # an unknown property of the device
            return _FAIL
        if not isinstance(value, int | float) or not abs(value) < 2**63 or value != int(value):
            raise _refused(node)
        return f"({int(value)}LL)" if value < 0 else f"{int(value)}LL"


def _is_condition(node: ast.expr) -> bool:
    """Whether the value is true or false: `and` and `or` of numbers give one of these numbers."""
    if isinstance(node, ast.BoolOp):
        return all(map(_is_condition, node.values))
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _refused(node: ast.expr) -> ExpressionError:
    return ExpressionError(
        f"`{ast.unparse(node)}` cannot be expressed in C: conditions on sizes may have whole numbers, + - *"
        " // %, comparisons, and, or, not, if, min, max, ceil_div, round_up, and log2 in ceil or floor"
    )
