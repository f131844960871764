"""Read what a file says of a kernel in Triton: the kernel itself, its decorators and its launches."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.core.records import Value
from autotune.core.syntax import parse_expression
from autotune.core.triton_source import TritonParameter, decorator_name
from autotune.scaffold.triton_configs import NotRead, read_configs

_DEPTH = 8  # of variables in an address, one in another


@dataclass(frozen=True)
class TritonKernel:
    """What is read of a kernel.

    `roles` has in, out or inout for each array, `configs` those of `@triton.autotune`, and `heuristics` the
    rules of `@triton.heuristics` as expressions. `unread` says where the list of configurations is and why it
    was not read; empty if it was.
    """

    entry: str
    parameters: Sequence[TritonParameter]
    code: str
    roles: Mapping[str, str]
    configs: Sequence[Mapping[str, Value]]
    heuristics: Mapping[str, str]
    unread: str = ""

    @property
    def arguments(self) -> list[str]:
        """What a launch passes: arrays and numbers."""
        return [one.name for one in self.parameters if not one.is_constant]

    @property
    def numbers(self) -> list[str]:
        """The arguments that are no arrays."""
        return [name for name in self.arguments if name not in self.roles]


def read_kernel(path: Path, function: ast.FunctionDef, parameters: Sequence[TritonParameter]) -> TritonKernel:
    """Read a kernel of a file."""
    listed = _listed_configs(function)
    configs, unread = [], ""
    if listed is not None:
        try:
            configs = read_configs(path, listed)
        except NotRead as error:
            unread = f"{path.name}:{listed.lineno}: {error}"
    return TritonKernel(
        entry=function.name,
        parameters=parameters,
        code=ast.unparse(function),
        roles=_roles(function, parameters),
        configs=configs,
        heuristics=_heuristics(function),
        unread=unread,
    )


def _roles(function: ast.FunctionDef, parameters: Sequence[TritonParameter]) -> dict[str, str]:
    """The parameters that loads and stores start from: in, out or inout, in the order of the function."""
    known = {one.name for one in parameters if not one.is_constant}
    assigned: dict[str, ast.expr] = {}
    found: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            assigned.setdefault(node.targets[0].id, node.value)
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        what = node.func.attr
        is_atomic = what.startswith("atomic")
        if is_atomic or what in ("load", "store", "make_block_ptr", "make_tensor_descriptor"):
            # `descriptor.load(places)`, or `tl.load(pointer)`
            base = _base(node.func.value, known, assigned) or _base(node.args[0], known, assigned)
            kinds = {"in", "out"} if is_atomic else {"load": {"in"}, "store": {"out"}}.get(what, set())
            if base is not None:
                found.setdefault(base, set()).update(kinds)
    names = [one.name for one in parameters if one.name in found]
    return {name: "inout" if len(found[name]) > 1 else next(iter(found[name]), "in") for name in names}


def _base(
    node: ast.expr, known: set[str], assigned: Mapping[str, ast.expr], depth: int = _DEPTH
) -> str | None:
    """The parameter that an address starts from."""
    match node:
        case ast.Name(name) if name in known:
            return name
        case ast.Name(name) if name in assigned and depth:
            return _base(assigned[name], known, assigned, depth - 1)
        case ast.BinOp(left, _, right):
            return _base(left, known, assigned, depth) or _base(right, known, assigned, depth)
        case ast.Call(ast.Attribute(value), arguments):
            inside = arguments[0] if arguments else value
            return _base(value, known, assigned, depth) or _base(inside, known, assigned, depth)
    return None


def _heuristics(function: ast.FunctionDef) -> dict[str, str]:
    """The rules of `@triton.heuristics` as expressions."""
    found = {}
    for one in function.decorator_list:
        if decorator_name(one) == "heuristics" and isinstance(one, ast.Call):
            table = one.args[0] if one.args else one.keywords[0].value
            for key, rule in (
                zip(table.keys, table.values, strict=True) if isinstance(table, ast.Dict) else ()
            ):
                if isinstance(key, ast.Constant) and isinstance(rule, ast.Lambda):
                    found[str(key.value)] = _translated(rule.body, rule.args.args[0].arg)
    return found


def grids(tree: ast.Module, kernel: str) -> list[list[str]]:
    """The grids with which a file launches a kernel, as expressions."""
    found = []
    for scope in [tree, *(one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef))]:
        values = {
            target.id: node.value
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(scope):
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.value, ast.Name)
                and node.value.id == kernel
            ):
                grid = node.slice
                grid = values.get(grid.id, grid) if isinstance(grid, ast.Name) else grid
                meta = ""
                if isinstance(grid, ast.Lambda):
                    meta, grid = grid.args.args[0].arg, grid.body
                parts = grid.elts if isinstance(grid, ast.Tuple | ast.List) else [grid]
                found.append([_translated(part, meta) for part in parts])
    return found


class _Translation(ast.NodeTransformer):
    """From Python on the host to the expressions of a space."""

    def __init__(self, meta: str) -> None:
        self._meta = meta

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`meta["BLOCK"]` is BLOCK."""
        is_meta = isinstance(node.value, ast.Name) and node.value.id == self._meta
        if is_meta and isinstance(node.slice, ast.Constant):
            return ast.Name(str(node.slice.value), ast.Load())
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`triton.cdiv` and `triton.next_power_of_2` have other names."""
        self.generic_visit(node)
        called = decorator_name(node)
        if called == "cdiv":
            return ast.Call(ast.Name("ceil_div", ast.Load()), node.args, [])
        if called == "next_power_of_2":
            return parse_expression(f"2 ** ceil(log2({ast.unparse(node.args[0])}))")
        return node


def _translated(node: ast.expr, meta: str) -> str:
    """A part of a host function as an expression, which may read names that no space has."""
    return ast.unparse(_Translation(meta).visit(parse_expression(ast.unparse(node))))


def _listed_configs(function: ast.FunctionDef) -> ast.expr | None:
    """The list of `@triton.autotune`."""
    for one in function.decorator_list:
        if decorator_name(one) == "autotune" and isinstance(one, ast.Call):
            listed = next((item.value for item in one.keywords if item.arg == "configs"), None)
            return listed or (one.args[0] if one.args else None)
    return None
