"""Follow one program of a kernel in Triton, statement by statement and through its helpers.

What values are, and what is done with them, is up to those who follow. Nothing of the source is run.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from autotune.sources.triton_module import Module, decorator_name
from autotune.sources.triton_values import NotRead

BITS = {"int32": 32, "int64": 64}
UNKNOWN = object()
Names = dict[str, Any]
_MAX_DEPTH = 8  # of functions that call functions


class NotFollowed(Exception):
    """The kernel is too large or too deep to follow, or has what is not understood."""


class Follower(ABC):
    """Follows one program of a launch; a tuple is itself, and `UNKNOWN` stands for what is not known."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._depth = 0

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
        return self._joined(returned)

    # what values are

    @abstractmethod
    def _number(self, value: Any) -> Any:
        """A constant of the source."""

    @abstractmethod
    def _decided(self, value: Any) -> bool | None:
        """Whether a condition holds; None if that is not known."""

    @abstractmethod
    def _item(self, held: Any, index: ast.expr, names: Names) -> Any:
        """What a subscript gives of a value."""

    @abstractmethod
    def _compared(self, left: Any, operator: ast.cmpop, right: Any) -> Any:
        """What a comparison gives."""

    @abstractmethod
    def _unary(self, operator: ast.unaryop, value: Any) -> Any:
        """What an operator of one value gives, but for `not`."""

    @abstractmethod
    def _binary(self, left: Any, operator: ast.operator, right: Any) -> Any:
        """What an operator of two values gives."""

    @abstractmethod
    def _built_in(self, node: ast.Call, called: str, own: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """What a function of Triton gives; the value of a method comes first."""

    @abstractmethod
    def _joined(self, values: Sequence[Any]) -> Any:
        """What may be any of several values; None for none."""

    @abstractmethod
    def _loop(self, node: ast.For | ast.While, names: Names, returned: list[Any]) -> None:
        """Follow a loop."""

    # statements

    def _block(self, body: Iterable[ast.stmt], names: Names, returned: list[Any]) -> bool:
        """Follow statements; True if none that comes after them runs."""
        return any(self._statement(one, names, returned) for one in body)

    def _statement(self, node: ast.stmt, names: Names, returned: list[Any]) -> bool:
        match node:
            case ast.Assign(targets, value):
                found = self._value(value, names)
                for target in targets:
                    bind(target, found, names)
            case ast.AnnAssign(target, _, ast.expr() as value):
                bind(target, self._value(value, names), names)
            case ast.AugAssign(ast.Name(name), operator, value):
                names[name] = self._binary(names.get(name, UNKNOWN), operator, self._value(value, names))
            case ast.If(test, then, otherwise):
                return self._branch(self._value(test, names), then, otherwise, names, returned)
            case ast.For() | ast.While():
                self._loop(node, names, returned)
            case ast.Return(value):
                returned.append(None if value is None else self._value(value, names))
                return True
            case ast.Expr(value):
                self._value(value, names)
        return isinstance(node, ast.Break | ast.Continue)

    def _branch(
        self, test: Any, then: list[ast.stmt], otherwise: list[ast.stmt], names: Names, returned: list[Any]
    ) -> bool:
        if (decided := self._decided(test)) is not None:
            return self._block(then if decided else otherwise, names, returned)
        left = []
        for body in (then, otherwise):
            own = dict(names)
            if not self._block(body, own, returned):
                left.append(own)
        for name in {name for own in left for name in own}:
            names[name] = self._joined([own.get(name, UNKNOWN) for own in left])
        return not left

    # expressions

    def _value(self, node: ast.expr, names: Names) -> Any:
        match node:
            case ast.Constant(bool() | int() | float() | str() | None as value):
                return self._number(value)
            case ast.Name(name):
                return names[name] if name in names else self._global(name)
            case ast.BinOp(left, operator, right):
                return self._binary(self._value(left, names), operator, self._value(right, names))
            case ast.UnaryOp(ast.Not(), operand):
                decided = self._decided(self._value(operand, names))
                return UNKNOWN if decided is None else not decided
            case ast.UnaryOp(sign, operand):
                return self._unary(sign, self._value(operand, names))
            case ast.BoolOp(operator, parts):
                known = [self._decided(self._value(part, names)) for part in parts]
                settling = isinstance(operator, ast.Or)
                return settling if settling in known else UNKNOWN if None in known else not settling
            case ast.Compare(left, [operator], [right]):
                return self._compared(self._value(left, names), operator, self._value(right, names))
            case ast.IfExp(test, then, otherwise):
                decided = self._decided(self._value(test, names))
                if decided is not None:
                    return self._value(then if decided else otherwise, names)
                return self._joined([self._value(then, names), self._value(otherwise, names)])
            case ast.Subscript(base, index):
                return self._item(self._value(base, names), index, names)
            case ast.Tuple(parts) | ast.List(parts):
                return tuple(self._value(part, names) for part in parts)
            case ast.Call():
                return self._call(node, names)
            case ast.Attribute(_, name) if name in BITS:  # such as tl.int64
                return name
        for part in ast.iter_child_nodes(node):  # a load may be in it
            if isinstance(part, ast.expr) and not isinstance(node, ast.Attribute):
                self._value(part, names)
        return UNKNOWN

    def _global(self, name: str) -> Any:
        try:
            found = self._module.value(name)
        except NotRead:
            return UNKNOWN
        return self._number(found) if isinstance(found, bool | int | float | str | None) else UNKNOWN

    def _call(self, node: ast.Call, names: Names) -> Any:
        given = [self._value(one, names) for one in node.args if not isinstance(one, ast.Starred)]
        named = {one.arg: self._value(one.value, names) for one in node.keywords if one.arg}
        if (function := self._module.called(node.func)) is not None:
            outer, self._module = self._module, function[0]
            found = self.run(function[1], given, named)
            self._module = outer
            return found
        base = self._value(node.func.value, names) if isinstance(node.func, ast.Attribute) else UNKNOWN
        own = given if base is UNKNOWN else [base, *given]
        return self._built_in(node, decorator_name(node), own, named)


def bind(target: ast.expr, value: Any, names: Names) -> None:
    """Give a value to the names of a target."""
    match target:
        case ast.Name(name):
            names[name] = value
        case ast.Tuple(parts) | ast.List(parts):
            items = value if isinstance(value, tuple) else (UNKNOWN,) * len(parts)
            for part, item in zip(parts, items, strict=False):
                bind(part, item, names)
