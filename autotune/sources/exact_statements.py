"""The statements of a function in the order in which they run, for what runs them.

What only reads a function leaves out casts, and takes an expression of which not every part is evaluated for
its parts. Here they differ; a function that is not understood in full is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tree_sitter import Node

from autotune.sources.kernel_source import Function
from autotune.sources.launch_run import NotUnderstood
from autotune.sources.statements import Statements, declarators
from autotune.sources.tree import field

CAST = "cast"
_REFUSED = frozenset((
    "ERROR", "goto_statement", "labeled_statement", "try_statement", "throw_statement", "for_range_loop",
    "switch_statement",
))  # fmt: skip


def exact_body(function: Function) -> list[ast.stmt]:
    """The statements of a function; raises NotUnderstood."""
    if function.has_error:
        raise NotUnderstood
    return [*function.read_by(_Exact)[0]]


class _Exact(Statements):
    def _converted(self, node: Node) -> list[ast.stmt]:
        if node.type in _REFUSED:
            raise NotUnderstood
        return super()._converted(node)

    def _declaration(self, node: Node) -> Iterator[ast.stmt]:
        declared = node.children_by_field_name("declarator")
        if any(part.type == "reference_declarator" for outer in declared for part in declarators(outer)):
            raise NotUnderstood
        return super()._declaration(node)

    def _update_expression(self, node: Node) -> ast.expr:
        target = super()._update_expression(node)
        if node.children[0] != field(node, "argument"):
            return target
        is_plus = self._tree.of(field(node, "operator")) == "++"  # the value from before
        return ast.BinOp(target, ast.Sub() if is_plus else ast.Add(), ast.Constant(value=1))

    def _binary_expression(self, node: Node) -> ast.expr:
        count = len(self._before)
        expression = super()._binary_expression(node)
        return self._whole(expression, count) if isinstance(expression, ast.BoolOp) else expression

    def _conditional_expression(self, node: Node) -> ast.expr:
        count = len(self._before)
        return self._whole(super()._conditional_expression(node), count)

    def _whole(self, expression: ast.expr, effects: int) -> ast.expr:
        """An expression of which not every part is evaluated: none has an effect."""
        if len(self._before) > effects:
            raise NotUnderstood
        return expression

    def _number_literal(self, node: Node) -> ast.expr:
        value = super()._number_literal(node)
        ending = self._tree.of(node).lower().lstrip("0123456789abcdefx")
        if isinstance(value, ast.Constant) and isinstance(value.value, int) and set(ending) & {"u", "l"}:
            kind = ("unsigned " if "u" in ending else "") + ("long" if "l" in ending else "int")
            return _cast_call(kind, value)
        return value

    def _number_cast(self, kind: str, value: ast.expr) -> ast.expr:
        if kind in self._known or any(kind in scope for scope in self._scopes):
            raise NotUnderstood  # of a variable in brackets
        return _cast_call(kind, value)

    def _lambda_expression(self, node: Node) -> ast.expr:
        raise NotUnderstood

    _gnu_asm_expression = _lambda_expression


def _cast_call(kind: str, value: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(CAST), [ast.Constant(value=kind), value], [])
