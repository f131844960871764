"""Work out what an expression of a Python file gives, from its syntax tree: nothing of the file is run.

Lists of configurations are made of this: literals, comprehensions, arithmetic, `triton.Config`, and the
project's own functions of assignments, conditions and a result. Whatever else there is has no value here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from operator import eq, ge, gt, is_, is_not, le, lt, ne
from typing import Any

from autotune.core.expression_ops import BINARY, COMPARE, MAX_SIZE, UNARY, list_of
from autotune.core.launch_plan import TRITON_OPTIONS
from autotune.core.records import Value

_COMPARE = {**COMPARE, ast.Is: is_, ast.IsNot: is_not}
_MAX_STEPS = 20_000
_MAX_DEPTH = 40  # of functions that call functions
_PACKAGES = ("triton", "torch")
Scope = dict[str, Any]


class NotRead(ValueError):
    """An expression that cannot be read, with the part of it that has no value here."""


class _Anything:
    """Stands for modules and devices: CUDA's newest, where a list asks."""


class _Config(dict[str, Value]):
    """What `triton.Config` holds."""


@dataclass(frozen=True)
class _Function:
    """A function of the file, or a lambda."""

    arguments: ast.arguments
    body: Sequence[ast.stmt]
    reader: Reader


_ANYTHING, _CONSTEXPR = _Anything(), _Anything()
_BUILT_IN: Scope = {
    **{
        one.__name__: one
        for one in (bool, dict, filter, int, len, list, max, min, range, sorted, str, tuple, zip)
    },
    **dict.fromkeys(_PACKAGES, _ANYTHING),
}
_IMPORTED: Mapping[tuple[str, str], Any] = {
    ("itertools", "product"): product,
    ("itertools", ""): {"product": product},
    ("operator", ""): {one.__name__: one for one in (eq, ge, gt, le, lt, ne)},
    ("os", ""): {"environ": {}, "getenv": lambda name, default=None: default},
}
_VENDORS = {"hip", "rocm", "amd", "xpu", "intel", "npu", "ascend", "mps", "cpu", "metal", "musa", "tpu"}
_CACHES = ("cache", "lru_cache")  # decorators that leave a function's result as it is


class Reader:
    """Evaluates expressions and plain statements of a file, up to a number of steps."""

    def __init__(self, named: Callable[[str], Any]) -> None:
        """Take what gives the value of a name of the file, or raises NotRead."""
        self._named = named
        self._left, self._depth = _MAX_STEPS, 0

    def read(self, node: ast.expr) -> Any:
        """The value of an expression of the file; raises NotRead, whatever is wrong with it."""
        try:
            return self.value(node, {})
        except NotRead:
            raise
        except RecursionError:
            raise NotRead("it is nested too deeply") from None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise NotRead(f"{type(error).__name__}: {error}") from None

    def configs(self, listed: ast.expr) -> list[dict[str, Value]]:
        """The configurations of a list; raises NotRead."""
        configs = self.read(listed)
        if not (
            configs and isinstance(configs, tuple) and all(isinstance(value, _Config) for value in configs)
        ):
            raise NotRead("it is no list of triton.Config")
        for config in configs:
            for name, value in config.items():
                if not isinstance(value, int | float | str | None):
                    raise NotRead(f"the value of {name}")
        return [dict(value) for value in configs]

    def imported(self, module: str, name: str) -> Any:
        """What stands for a name that is imported from a package which is not read."""
        if module.partition(".")[0] in _PACKAGES:
            return _Config if name == "Config" else _ANYTHING
        if (module, name) in _IMPORTED:
            return _IMPORTED[module, name]
        raise NotRead(name or module)

    def _global(self, name: str) -> Any:
        try:
            return self._named(name)
        except NotRead:
            if name in _BUILT_IN:
                return _BUILT_IN[name]
            raise

    def run(self, body: Sequence[ast.stmt], scope: Scope) -> Any:
        """Run statements; what they return is a list of one value, or empty."""
        for statement in body:
            match statement:
                case ast.Return(value):
                    return [None if value is None else self.value(value, scope)]
                case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(
                    ast.Name(name), _, ast.expr() as value
                ):
                    scope[name] = self.value(value, scope)
                case ast.AugAssign(ast.Name(name), operator, value):
                    scope[name] = BINARY[type(operator)](scope[name], self.value(value, scope))
                case ast.If(condition, then, otherwise):
                    if returned := self.run(then if self.holds(condition, scope) else otherwise, scope):
                        return returned
                case ast.FunctionDef(name, arguments, inside, decorators) if all(map(_is_cache, decorators)):
                    scope[name] = _Function(arguments, inside, self)
                case ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant()) | ast.Pass():
                    pass
                case _:
                    raise NotRead(ast.unparse(statement).partition("\n")[0])
        return []

    def value(self, node: ast.expr, scope: Scope) -> Any:
        """The value of an expression."""
        self._left -= 1
        if self._left < 0:
            raise NotRead("it takes too long")
        match node:
            case ast.Constant(int() | float() | str() | None as value):
                return value
            case ast.Name(name):
                return scope[name] if name in scope else self._global(name)
            case ast.Tuple(items) | ast.List(items):
                return list_of(*self._items(items, scope))
            case ast.Dict(keys, values):
                return self._mapping(keys, values, scope)
            case ast.ListComp(item, loops) | ast.GeneratorExp(item, loops):
                return list_of(*(self.value(item, inner) for inner in self._scopes(loops, scope)))
            case ast.BinOp(left, operator, right):
                return BINARY[type(operator)](self.value(left, scope), self.value(right, scope))
            case ast.UnaryOp(sign, operand):
                return UNARY[type(sign)](self.value(operand, scope))
            case ast.BoolOp(ast.And(), parts):
                return all(self.value(part, scope) for part in parts)
            case ast.BoolOp(ast.Or(), parts):
                return any(self.value(part, scope) for part in parts)
            case ast.Compare(left, signs, others):
                values = [self.value(one, scope) for one in (left, *others)]
                pairs = zip(signs, values, values[1:], strict=False)
                return all(_COMPARE[type(sign)](one, other) for sign, one, other in pairs)
            case ast.IfExp(condition, then, otherwise):
                return self.value(then if self.holds(condition, scope) else otherwise, scope)
            case ast.Lambda(arguments, result):
                return _Function(arguments, [ast.Return(result)], self)
            case ast.Attribute(base, name):
                return self._attribute(self.value(base, scope), name, node)
            case ast.Subscript(base, index):
                held = self.value(base, scope)
                return 9 if held is _ANYTHING else held[self.value(index, scope)]
            case ast.Call(function, arguments, named):
                return self._call(self.value(function, scope), arguments, named, scope)
        raise NotRead(ast.unparse(node))

    def holds(self, condition: ast.expr, scope: Scope | None = None) -> bool:
        """Whether a condition is true for CUDA; one that depends on what is not known here counts as true.

        A text that is not known, of a device as a rule, is "cuda"; other vendors are not there.
        """
        try:
            return bool(self.read(condition) if scope is None else self.value(condition, scope))
        except NotRead:
            pass
        match condition:
            case ast.BoolOp(ast.And(), parts):
                return all(self.holds(part, scope) for part in parts)
            case ast.BoolOp(ast.Or(), parts):
                return any(self.holds(part, scope) for part in parts)
            case ast.UnaryOp(ast.Not(), inner):
                return not self.holds(inner, scope)
            case ast.Compare(_, [ast.Eq()], [ast.Constant(str(text))]):
                return text == "cuda"
            case ast.Compare(_, [ast.NotEq()], [ast.Constant(str(text))]):
                return text != "cuda"
        return not _VENDORS & {*ast.unparse(condition).lower().replace(".", "_").replace("(", "_").split("_")}

    def _items(self, items: Sequence[ast.expr], scope: Scope) -> Iterator[Any]:
        for item in items:
            match item:
                case ast.Starred(inside):
                    yield from self.value(inside, scope)
                case _:
                    yield self.value(item, scope)

    def _mapping(
        self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr], scope: Scope
    ) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key, value in zip(keys, values, strict=True):
            given = self.value(value, scope)
            mapping |= given if key is None else {self.value(key, scope): given}
        return mapping

    def _scopes(self, loops: Sequence[ast.comprehension], scope: Scope) -> Iterator[Scope]:
        """The names inside of a comprehension, for each of its turns."""
        if not loops:
            yield scope
            return
        loop, *inner_loops = loops
        for item in self.value(loop.iter, scope):
            inner = scope | _bound(loop.target, item)
            if all(self.value(condition, inner) for condition in loop.ifs):
                yield from self._scopes(inner_loops, inner)

    def _attribute(self, base: Any, name: str, node: ast.expr) -> Any:
        match base, name:
            case _Anything(), "Config":
                return _Config
            case _Anything(), "constexpr":
                return _CONSTEXPR
            case _Anything(), "backend":
                return "cuda"
            case _Anything(), "hip":
                return None
            case _Anything(), _:
                return _ANYTHING
            case dict(), _ if not isinstance(base, _Config) and name in base:  # a module
                return base[name]
            case dict(), "get":
                return base.get
            case str(), "lower" | "upper" | "strip" | "startswith" | "endswith":
                return getattr(base, name)
            case _Config(), "kwargs":
                return base
            case _Config(), _ if name in TRITON_OPTIONS:
                return base[name]
        raise NotRead(ast.unparse(node))

    def _call(
        self, function: Any, arguments: Sequence[ast.expr], named: Sequence[ast.keyword], scope: Scope
    ) -> Any:
        if function is _CONSTEXPR:
            return self.value(arguments[0], scope)
        if function is _ANYTHING:
            return _ANYTHING
        if function is _Config:
            named = [keyword for keyword in named if keyword.arg in (None, "kwargs", *TRITON_OPTIONS)]
        given = list(self._items(arguments, scope))
        keys = [None if keyword.arg is None else ast.Constant(keyword.arg) for keyword in named]
        options = self._mapping(keys, [keyword.value for keyword in named], scope)
        if function is _Config:
            return _config(*given, **options)
        if isinstance(function, _Function):
            return function.reader._called(function, given, options)
        if function is filter:
            keep, items = given
            return tuple(item for item in items if keep.reader._called(keep, [item], {}))
        result = dict(*given, **options) if function is dict else function(*given)
        return (
            result if isinstance(result, int | float | str | dict) else list_of(*islice(result, MAX_SIZE + 1))
        )

    def _called(self, function: _Function, given: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """What a function of the file returns."""
        names = [argument.arg for argument in function.arguments.args]
        defaults = function.arguments.defaults
        scope: Scope = {
            name: self.value(default, {})
            for name, default in zip(names[len(names) - len(defaults) :], defaults, strict=True)
        }
        scope |= {**dict(zip(names, given, strict=False)), **options}
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotRead("it is nested too deeply")
        returned = self.run(function.body, scope)
        self._depth -= 1
        return returned[0] if returned else None


def _is_cache(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(called).rpartition(".")[2] in _CACHES


def bound_names(node: ast.stmt) -> set[str]:
    """The names that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    names: set[str] = set()
    left: list[ast.AST] = [node]
    while left:
        part = left.pop()
        if isinstance(part, ast.Import | ast.ImportFrom):
            names |= {item.asname or item.name.partition(".")[0] for item in part.names}
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
        elif isinstance(part, ast.FunctionDef | ast.ClassDef):
            names.add(part.name)
        elif not isinstance(part, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda):
            left += ast.iter_child_nodes(part)
    return names


def _bound(target: ast.expr, item: Any) -> Scope:
    match target:
        case ast.Name(name):
            return {name: item}
        case ast.Tuple(parts) | ast.List(parts):
            pairs = zip(parts, item, strict=True)
            return {name: value for part, inner in pairs for name, value in _bound(part, inner).items()}
    raise NotRead(ast.unparse(target))


def _config(kwargs: Mapping[str, Value], *numbers: Value, **options: Value) -> _Config:
    """`triton.Config` as a mapping of constants and of those options that a space may have."""
    given = {**dict(zip(TRITON_OPTIONS, numbers, strict=False)), **options}
    return _Config({**kwargs, **{name: value for name, value in given.items() if value}})
