"""Follow the functions of kernels in Triton, statement by statement, through their helpers."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from autotune.sources.triton_module import TritonModule, decorator_name

_V = TypeVar("_V")
_MAX_DEPTH = 8  # of functions that call functions
WHOLE_TYPES = ("int32", "int64", "uint32", "uint64")
SHORT_TYPES = ("float16", "bfloat16")


class Follower(ABC, Generic[_V]):
    """Follows statements; what their values are, and what an operation makes of them, a subclass says.

    A condition that is not decided leaves both of its branches to be followed: what they assign is joined.
    """

    unknown: _V

    def __init__(self, module: TritonModule) -> None:
        """Begin in a file."""
        self._module = module  # of the function that is followed
        self._depth = 0
        self._is_sure = True  # False where statements only may run

    def follow(
        self, module: TritonModule, function: ast.FunctionDef, given: Sequence[_V], named: Mapping[str, _V]
    ) -> _V:
        """Follow a function of a file; gives what it returns."""
        outer, self._module = self._module, module
        arguments = function.args
        positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        names: dict[str, _V] = {}
        for name, default in (
            *zip(reversed(positional), reversed(arguments.defaults), strict=False),
            *zip((argument.arg for argument in arguments.kwonlyargs), arguments.kw_defaults, strict=True),
        ):
            if default is not None:
                names[name] = self._value(default, {})
        names.update(zip((name for name in positional if name not in named), given, strict=False))
        names.update(named)
        was_sure, returned = self._is_sure, list[_V]()
        self._depth += 1
        self._block(function.body, names, returned)
        self._depth -= 1
        self._module, self._is_sure = outer, was_sure  # callers go on surely after a `return` that may happen
        return self._joined(returned)

    def _block(self, body: Iterable[ast.stmt], names: dict[str, _V], returned: list[_V]) -> bool:
        """Follow statements; True if none that comes after them runs."""
        return any(self._statement(statement, names, returned) for statement in body)

    def _statement(self, node: ast.stmt, names: dict[str, _V], returned: list[_V]) -> bool:
        """The same for one statement."""
        match node:
            case ast.Assign(targets, value):
                assigned = self._value(value, names)
                for target in targets:
                    self._bind(target, assigned, names)
            case ast.AnnAssign(target, _, ast.expr() as value):
                self._bind(target, self._value(value, names), names)
            case ast.AugAssign(ast.Name(name), operator, value):
                before = names.get(name, self.unknown)
                names[name] = self._binary(before, operator, self._value(value, names))
            case ast.If():
                return self._branch(node, names, returned)
            case ast.For() | ast.While():
                self._loop(node, names, returned)
            case ast.Return(value):
                returned.append(self._constant(None) if value is None else self._value(value, names))
                return True
            case ast.Expr(value):
                self._value(value, names)
            case ast.With(_, body):
                return self._block(body, names, returned)
            case ast.Pass() | ast.Assert() | ast.AnnAssign():
                pass
            case _:
                self._not_followed(node)
        return False

    def _branch(self, node: ast.If, names: dict[str, _V], returned: list[_V]) -> bool:
        if (decided := self._decided(self._value(node.test, names))) is not None:
            return self._block(node.body if decided else node.orelse, names, returned)
        was_sure, self._is_sure = self._is_sure, False
        before, left = len(returned), []
        for body in (node.body, node.orelse):
            own = dict(names)
            if not self._block(body, own, returned):
                left.append(own)
        for name in dict.fromkeys(name for own in left for name in own):
            names[name] = self._joined([own.get(name, self.unknown) for own in left])
        self._is_sure = was_sure and len(returned) == before
        return not left

    def _bind(self, target: ast.expr, value: _V, names: dict[str, _V]) -> None:
        """Give a value to the names of a target."""
        match target:
            case ast.Name(name):
                names[name] = value
            case ast.Tuple(parts) | ast.List(parts):
                for place, part in enumerate(parts):
                    self._bind(part, self._item(value, ast.Constant(place), names), names)

    def _value(self, node: ast.expr, names: dict[str, _V]) -> _V:
        """The value of an expression."""
        match node:
            case ast.Name(name):
                return names[name] if name in names else self._constant(self._module.constant(name, ...))
            case ast.Constant(value):
                return self._constant(value)
            case ast.BinOp(left, operator, right):
                return self._binary(self._value(left, names), operator, self._value(right, names))
            case ast.UnaryOp(ast.Not(), operand):
                decided = self._decided(self._value(operand, names))
                return self._constant(... if decided is None else not decided)
            case ast.UnaryOp(sign, operand):
                return self._unary(sign, self._value(operand, names))
            case ast.BoolOp(sign, parts):
                known = [self._decided(self._value(part, names)) for part in parts]
                settling = isinstance(sign, ast.Or)
                decided = settling if settling in known else None if None in known else not settling
                return self._constant(... if decided is None else decided)
            case ast.Compare(left, signs, rights):
                return self._compared([self._value(part, names) for part in (left, *rights)], signs)
            case ast.IfExp(test, then, otherwise):
                decided = self._decided(self._value(test, names))
                chosen = [then, otherwise] if decided is None else [then if decided else otherwise]
                return self._chosen([self._value(part, names) for part in chosen])
            case ast.Subscript(base, index):
                return self._item(self._value(base, names), index, names)
            case ast.Tuple(parts) | ast.List(parts):
                return self._listed([self._value(part, names) for part in parts])
            case ast.Attribute(_, name) if name in (*WHOLE_TYPES, *SHORT_TYPES):  # such as tl.int64
                return self._constant(name)
            case ast.Attribute(base, "T"):
                return self._built_in("trans", [self._value(base, names)], {}, is_method=True)
            case ast.Call():
                return self._call(node, names)
        for part in ast.iter_child_nodes(node) if not isinstance(node, ast.Attribute) else ():
            if isinstance(part, ast.expr):  # a load may be in it
                self._value(part, names)
        return self.unknown

    def _call(self, node: ast.Call, names: dict[str, _V]) -> _V:
        given = [self._value(part, names) for part in node.args if not isinstance(part, ast.Starred)]
        named = {part.arg: self._value(part.value, names) for part in node.keywords if part.arg}
        called = decorator_name(node)
        if isinstance(node.func, ast.Name):  # Python's own
            called = {"min": "minimum", "max": "maximum"}.get(called, called)
        if (function := self._module.called(node.func)) is not None:
            if self._may_enter:
                return self.follow(*function, given, named)
            called = ""
        base = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_method = base is not None and _is_value(base, names)
        own = [self._value(base, names), *given] if base is not None and is_method else given
        return self._built_in(called, own, named, is_method=is_method)

    @property
    def _may_enter(self) -> bool:
        """Whether one more function is followed where it is called."""
        return self._depth < _MAX_DEPTH

    def _not_followed(self, node: ast.stmt) -> None:
        """Take note of a statement that is not followed."""

    @abstractmethod
    def _loop(self, node: ast.For | ast.While, names: dict[str, _V], returned: list[_V]) -> None:
        """Follow a loop."""

    @abstractmethod
    def _decided(self, value: _V) -> bool | None:
        """Whether a condition holds; None if that is unknown."""

    def _chosen(self, values: Sequence[_V]) -> _V:
        """What an expression gives that has one of several values."""
        return self._joined(values)

    @abstractmethod
    def _joined(self, values: Sequence[_V]) -> _V:
        """What is one of several values; what a function returns without any."""

    @abstractmethod
    def _constant(self, value: Any) -> _V:
        """A constant of the source; `...` is unknown."""

    @abstractmethod
    def _listed(self, values: Sequence[_V]) -> _V:
        """A tuple."""

    @abstractmethod
    def _item(self, held: _V, index: ast.expr, names: dict[str, _V]) -> _V:
        """An item of a tuple, or a tile with further axes."""

    @abstractmethod
    def _binary(self, left: _V, operator: ast.operator, right: _V) -> _V:
        """The result of an operator."""

    @abstractmethod
    def _unary(self, operator: ast.unaryop, value: _V) -> _V:
        """The result of a sign."""

    @abstractmethod
    def _compared(self, values: Sequence[_V], operators: Sequence[ast.cmpop]) -> _V:
        """The result of a comparison."""

    @abstractmethod
    def _built_in(self, called: str, own: Sequence[_V], named: Mapping[str, _V], *, is_method: bool) -> _V:
        """The result of a function that is no helper; a method's object comes first."""


def _is_value(node: ast.expr, names: Mapping[str, Any]) -> bool:
    """True unless an expression names a module, such as `tl.math`."""
    while isinstance(node, ast.Attribute) and node.attr != "T":
        node = node.value
    return not isinstance(node, ast.Name) or node.id in names
