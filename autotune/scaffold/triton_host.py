"""What the host's code around a kernel in Triton says: its grids, and the list of `@triton.autotune`."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from autotune.core.launch_plan import TRITON_OPTIONS
from autotune.core.records import Value
from autotune.core.triton_source import decorator_name, device_part


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
                found.append([translated(part, meta) for part in parts])
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
            return ast.parse(f"2 ** ceil(log2({ast.unparse(node.args[0])}))", mode="eval").body
        return node


def translated(node: ast.expr, meta: str) -> str:
    """A part of a host function as an expression, which may read names that no space has."""
    return ast.unparse(_Translation(meta).visit(ast.parse(ast.unparse(node), mode="eval").body))


class _Anything:
    """Stands for modules and devices while a list of configurations is evaluated: CUDA's newest, if asked."""

    backend = "cuda"

    def __getattr__(self, name: str) -> Any:
        return _config if name == "Config" else self

    def __call__(self, *_: object, **__: object) -> Any:
        return self

    def __getitem__(self, _: object) -> int:
        return 9


def _config(values: Mapping[str, Value], **options: Any) -> dict[str, Value]:
    """`triton.Config` as a plain mapping."""
    return {**values, **{name: value for name, value in options.items() if name in TRITON_OPTIONS and value}}


def configs(path: Path, function: ast.FunctionDef) -> list[dict[str, Value]]:
    """The configurations of `@triton.autotune`; none where they cannot be evaluated by themselves."""
    for one in function.decorator_list:
        if decorator_name(one) == "autotune" and isinstance(one, ast.Call):
            listed = next((item.value for item in one.keywords if item.arg == "configs"), None)
            listed = listed or (one.args[0] if one.args else None)
            if listed is not None:
                return _evaluated(path, listed)
    return []


def _evaluated(path: Path, listed: ast.expr) -> list[dict[str, Value]]:
    names = {node.id for node in ast.walk(listed) if isinstance(node, ast.Name)}
    stand_in = _Anything()
    scope: dict[str, Any] = {"triton": stand_in, "torch": stand_in, "product": product}
    try:
        text = device_part(path.read_text(encoding="utf-8"), path, wanted=names - {"triton", "torch"})
        lines = [line for line in text.splitlines() if not re.match(r"(import|from) (triton|torch)\b", line)]
        exec("\n".join(lines), scope)
        found = eval(ast.unparse(listed), scope)
        return [dict(config) for config in found]
    except Exception:  # noqa: BLE001 - whatever a user's list needs; then there is no list
        return []
