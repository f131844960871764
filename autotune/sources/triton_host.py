"""Read what the host's functions of a file with kernels in Triton say: launches, allocations and defaults."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.core.records import Value
from autotune.core.syntax import parse_expression
from autotune.sources.triton_module import TritonModule, decorator_name

SAME = "DTYPE"  # the element type of an array that is made like another
_MADE = ("empty", "zeros", "ones", "full", "empty_strided")
_MADE_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like", "new_empty", "new_zeros", "new_full")
# Arrays of 16 bits have the type of the inputs, which a space chooses.
_TYPES = {
    **dict.fromkeys(("half", "float16", "bfloat16"), SAME),
    **{"float": "float32", "double": "float64", "int": "int32", "long": "int64"},
    **{name: name for name in ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")},
}


@dataclass(frozen=True)
class TritonLaunch:
    """A launch of a kernel: its grid as expressions, and the element types of arrays that the host makes."""

    grid: Sequence[str]
    made: Mapping[int | str, str]  # by place or name; SAME for that of another array


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
        for name, grid, call in launched:
            launches_of[name].append(TritonLaunch(_grid(grid, values), _made(call, values)))
    return launches_of


def defaults(module: TritonModule) -> dict[str, Value]:
    """The numbers that parameters of the host's functions have as defaults, by name."""
    numbers: dict[str, Value] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef) and node.name not in module.kernels:
            arguments = node.args
            named = [*arguments.posonlyargs, *arguments.args]
            pairs = [*zip(reversed(named), reversed(arguments.defaults), strict=False)]
            for argument, default in (*pairs, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)):
                match default:
                    case ast.Constant(bool()):
                        pass
                    case ast.Constant(int() | float() as value):
                        numbers.setdefault(argument.arg, value)
                    case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
                        numbers.setdefault(argument.arg, -value)
    return numbers


def _grid(grid: ast.expr, values: Mapping[str, ast.expr]) -> list[str]:
    grid = values.get(grid.id, grid) if isinstance(grid, ast.Name) else grid
    meta = ""
    if isinstance(grid, ast.Lambda) and grid.args.args:
        meta, grid = grid.args.args[0].arg, grid.body
    return [
        translated(part, meta) for part in (grid.elts if isinstance(grid, ast.Tuple | ast.List) else [grid])
    ]


def _made(call: ast.Call, values: Mapping[str, ast.expr]) -> dict[int | str, str]:
    places: dict[int | str, ast.expr] = {**dict(enumerate(call.args))}
    places |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    made = {
        place: _allocated(values.get(given.id, given) if isinstance(given, ast.Name) else given)
        for place, given in places.items()
    }
    return {place: dtype for place, dtype in made.items() if dtype}


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

    def __init__(self, meta: str) -> None:
        self._meta = meta

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


def translated(node: ast.expr, meta: str) -> str:
    """A part of a host function as an expression, which may read names that no space has."""
    return ast.unparse(_Translation(meta).visit(parse_expression(ast.unparse(node))))
