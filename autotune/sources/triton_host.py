"""Read what the host's functions of a file with kernels in Triton say: launches, allocations and defaults."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from autotune.core.records import Value
from autotune.core.syntax import parse_expression
from autotune.sources.triton_module import TritonModule, decorator_name
from autotune.sources.triton_values import NotRead

SAME = "DTYPE"  # the element type of an array that is made like another
_MADE = ("empty", "zeros", "ones", "full", "empty_strided")
_MADE_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_zeros", "new_full")
# Arrays of 16 bits have the type of the inputs, which a space chooses.
_TYPES = {
    **dict.fromkeys(("half", "float16", "bfloat16"), SAME),
    **{"float": "float32", "double": "float64", "int": "int32", "long": "int64"},
    **{name: name for name in ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")},
}

_MAX_VARIABLES = 8  # of a rule, each of which may double its expression


@dataclass(frozen=True)
class TritonLaunch:
    """A launch of a kernel: its grid as expressions, and what is known of its arguments, by place or name."""

    grid: Sequence[str]
    made: Mapping[int | str, str]  # the element types of arrays that the host makes; SAME for that of another
    constants: Mapping[int | str, Value]  # numbers and texts


def launches(module: TritonModule) -> dict[str, list[TritonLaunch]]:
    """The launches in a file of each of its kernels."""
    launches_of: dict[str, list[TritonLaunch]] = {name: [] for name in module.kernels}
    functions = [part for part in ast.walk(module.tree) if isinstance(part, ast.FunctionDef)]
    for scope in (module.tree, *(function for function in functions if function.name not in launches_of)):
        values: dict[str, ast.expr] = {}
        launched: list[tuple[str, ast.expr, ast.Call]] = []
        for node in ast.walk(scope):
            match node:
                case ast.Assign([ast.Name(name)], value):
                    values[name] = value
                case ast.FunctionDef(
                    name, ast.arguments(args=[ast.arg()]), [*_, ast.Return(ast.expr() as value)]
                ):
                    values[name] = ast.Lambda(node.args, value)
                case ast.Call(ast.Subscript(ast.Name(name), grid)) if name in launches_of:
                    launched.append((name, grid, node))
        known = _defaults_of(scope) if isinstance(scope, ast.FunctionDef) else {}
        for name, grid, call in launched:
            given = _given(call, values)
            made = {place: dtype for place, one in given.items() if (dtype := _allocated(one))}
            numbers = {place: _number(module, one, known) for place, one in given.items()}
            constants = {place: value for place, value in numbers.items() if value is not None}
            launches_of[name].append(TritonLaunch(_grid(grid, values), made, constants))
    return launches_of


def defaults(module: TritonModule) -> dict[str, Value]:
    """The numbers that parameters of the host's functions have as defaults, by name."""
    numbers: dict[str, Value] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef) and node.name not in module.kernels:
            for name, value in _defaults_of(node).items():
                if not isinstance(value, bool):
                    numbers.setdefault(name, value)
    return numbers


def _defaults_of(function: ast.FunctionDef) -> dict[str, Value]:
    """The numbers that parameters of a function have as defaults, by name."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(named), reversed(arguments.defaults), strict=False)]
    numbers: dict[str, Value] = {}
    for argument, default in (*pairs, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)):
        match default:
            case ast.Constant(int() | float() as value):
                numbers[argument.arg] = value
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
                numbers[argument.arg] = -value
    return numbers


def _grid(grid: ast.expr, values: Mapping[str, ast.expr]) -> list[str]:
    grid = values.get(grid.id, grid) if isinstance(grid, ast.Name) else grid
    meta = ""
    if isinstance(grid, ast.Lambda) and grid.args.args:
        meta, grid = grid.args.args[0].arg, grid.body
    return [
        translated(part, meta) for part in (grid.elts if isinstance(grid, ast.Tuple | ast.List) else [grid])
    ]


def _given(call: ast.Call, values: Mapping[str, ast.expr]) -> dict[int | str, ast.expr]:
    """The arguments of a launch by place or name, where a variable counts as what it was given."""
    plain = takewhile(lambda given: not isinstance(given, ast.Starred), call.args)
    places: dict[int | str, ast.expr] = {**dict(enumerate(plain))}
    places |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    return {
        place: values.get(given.id, given) if isinstance(given, ast.Name) else given
        for place, given in places.items()
    }


def _number(module: TritonModule, node: ast.expr, known: Mapping[str, Value]) -> Value | None:
    """The number or text that an argument of a launch is, with these values of variables; None if unknown."""
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    try:
        value = module.reader.read(node)
    except NotRead:
        return None
    return value if isinstance(value, int | float | str) else None


def _allocated(node: ast.expr) -> str:
    """The element type that a call makes an array of; empty for another call, or a type that is not read."""
    if not isinstance(node, ast.Call) or (called := decorator_name(node)) not in (*_MADE, *_MADE_LIKE):
        return ""
    dtype = next((keyword.value for keyword in node.keywords if keyword.arg == "dtype"), None)
    match dtype:
        case None:
            # what `torch.full` fills with decides its type
            return SAME if called in _MADE_LIKE else "" if called == "full" else "float32"
        case ast.Attribute(_, "dtype"):
            return SAME
        case ast.Attribute(_, name):
            return _TYPES.get(name, "")
    return ""


class _Translation(ast.NodeTransformer):
    """From Python on the host to the expressions of a space."""

    def __init__(self, meta: str, known: Mapping[str, ast.expr]) -> None:
        self._meta, self._known = meta, known

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A variable is what it was given."""
        return self._known.get(node.id, node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`meta["BLOCK"]` is BLOCK."""
        match node:
            case ast.Subscript(ast.Name(self._meta), ast.Constant(name)):
                return ast.Name(str(name), ast.Load())
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`triton.cdiv` and `triton.next_power_of_2` have other names."""
        self.generic_visit(node)
        called = decorator_name(node)
        if called in ("cdiv", "ceil_div", "ceildiv"):
            return ast.Call(ast.Name("ceil_div", ast.Load()), node.args, [])
        if called == "next_power_of_2" and node.args:
            return parse_expression(f"2 ** ceil(log2({ast.unparse(node.args[0])}))")
        return node


def translated(node: ast.expr, meta: str, known: Mapping[str, ast.expr] | None = None) -> str:
    """A part of a host function as an expression, which may read names that no space has.

    `meta` is the mapping of the kernel's arguments, `known` has the values of variables.
    """
    copied = parse_expression(ast.unparse(node))
    return ast.unparse(_Translation(meta, known or {}).visit(copied))


def heuristics(module: TritonModule, function: ast.FunctionDef) -> dict[str, str]:
    """The rules of `@triton.heuristics` as expressions; empty for those that are none."""
    rules = {}
    for decorator in function.decorator_list:
        if not isinstance(decorator, ast.Call) or decorator_name(decorator) != "heuristics":
            continue
        given = [*decorator.args, *(keyword.value for keyword in decorator.keywords)]
        match _followed(module, given[0], ast.Dict) if given else None:
            case own, ast.Dict(keys, values):
                for key, rule in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant):
                        rules[str(key.value)] = _rule(own, rule)
    return rules


def _followed(
    module: TritonModule, node: ast.expr, *kinds: type[ast.AST]
) -> tuple[TritonModule, ast.AST] | None:
    """What an expression stands for, if it is the name of something of these kinds, and where that is."""
    if isinstance(node, ast.Name):
        return module.defined(node.id, *kinds)
    return (module, node) if isinstance(node, kinds) else None


def _rule(module: TritonModule, node: ast.expr) -> str:
    """The result of a function of the kernel's arguments as an expression; empty if it has conditions."""
    match _followed(module, node, ast.FunctionDef, ast.Lambda):
        case _, ast.Lambda(ast.arguments(args=[ast.arg(meta)]), result):
            return translated(result, meta)
        case _, ast.FunctionDef(_, ast.arguments(args=[ast.arg(meta)]), body):
            known: dict[str, ast.expr] = {}
            for statement in body:
                match statement:
                    case ast.Assign([ast.Name(name)], value) if len(known) < _MAX_VARIABLES:
                        known[name] = parse_expression(translated(value, meta, known))
                    case ast.Return(ast.expr() as value):
                        return translated(value, meta, known)
                    case ast.Expr(ast.Constant()):
                        pass
                    case _:
                        break
    return ""
