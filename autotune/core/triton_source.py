"""Read sources in Triton: what a kernel needs of a Python file, without importing it.

A file with a kernel often imports a framework, and runs benchmarks when it is imported. So only the functions
under `@triton.jit`, and what they use, are handed to the compiler. Only their text is hashed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from autotune.core.frozen import dataclass
from autotune.core.syntax import parse_module
from autotune.errors import InputError

_JIT = ("jit", "constexpr_function")  # decorators that make functions for the device


@dataclass(frozen=True)
class TritonParameter:
    """A parameter of a kernel; `is_constant` is for `tl.constexpr`."""

    name: str
    is_constant: bool
    has_default: bool


def is_triton(text: str) -> bool:
    """True if a text in Python has a function under `@triton.jit`."""
    if "jit" not in text:
        return False
    try:
        return any(map(_is_jit, _functions(parse_module(text))))
    except SyntaxError:
        return False


def device_part(
    text: str, path: Path, folders: Sequence[Path] = (), *, wanted: Iterable[str] | None = None
) -> str:
    """The functions for the device in a text in Python, and all that these use.

    Functions that are imported from files of its folder, or of `folders`, are put in their place. Decorators
    such as `@triton.autotune` are left out.

    Args:
        text: That of a file.
        path: The file.
        folders: For imports.
        wanted: The names that are wanted; None are all functions for the device.

    Raises:
        InputError: The text is not Python.
    """
    tree = _tree(text, path)
    if wanted is None:
        wanted = {one.name for one in _functions(tree) if _is_jit(one)}
    return _Extract(text, tree, path, folders).of(wanted)


def kernels(text: str, path: Path) -> dict[str, tuple[TritonParameter, ...]]:
    """The parameters of every function under `@triton.jit`, by name; raises InputError."""
    return {one.name: tuple(_parameters(one.args)) for one in _functions(_tree(text, path)) if _is_jit(one)}


def decorator_name(node: ast.expr) -> str:
    """The last word of a decorator: `jit` of `@triton.jit` and of `@triton.jit(debug=True)`."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


class _Extract:
    """Picks statements of one file by the names that they define."""

    def __init__(self, text: str, tree: ast.Module, path: Path, folders: Sequence[Path]) -> None:
        self._lines = text.splitlines()
        self._tree = tree
        self._path = path
        self._folders = folders

    def of(self, names: Iterable[str]) -> str:
        """The statements that define names, and all that these use, in the order of the file."""
        needed, used = set(names), set(names)
        while needed:
            found = {name for one in self._tree.body if needed & _bound(one) for name in _read(one)}
            needed = found - used
            used |= found
        return "".join(self._text(one, used & _bound(one)) for one in self._tree.body if used & _bound(one))

    def _text(self, node: ast.stmt, names: set[str]) -> str:
        if isinstance(node, ast.ImportFrom) and (path := self._file(node)) is not None:
            text = path.read_text(encoding="utf-8")
            wanted = {item.name: item.asname for item in node.names if (item.asname or item.name) in names}
            inlined = _Extract(text, _tree(text, path), path, self._folders).of(wanted)
            return inlined + "".join(f"{other} = {name}\n" for name, other in wanted.items() if other)
        if isinstance(node, ast.Import | ast.ImportFrom):
            kept = [item for item in node.names if (item.asname or item.name.partition(".")[0]) in names]
            node.names = kept
            return ast.unparse(node) + "\n"
        first = node.lineno
        head = ""
        if isinstance(node, ast.FunctionDef) and _is_jit(node):
            head = "".join(
                f"@{ast.unparse(one)}\n" for one in node.decorator_list if decorator_name(one) in _JIT
            )
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.decorator_list:
            first = node.decorator_list[0].lineno
        return head + "\n".join(self._lines[first - 1 : node.end_lineno]) + "\n"

    def _file(self, node: ast.ImportFrom) -> Path | None:
        """The file of this project that a statement imports from; None for an installed package."""
        base = self._path.parent
        for _ in range(node.level - 1):
            base = base.parent
        parts = (node.module or "__init__").split(".")
        folders = [base] if node.level else [base, *self._folders]
        found = [folder.joinpath(*parts).with_suffix(".py") for folder in folders]
        return next((path for path in found if path.is_file()), None)


def _tree(text: str, path: Path) -> ast.Module:
    try:
        return parse_module(text)
    except SyntaxError as error:
        raise InputError(f"{path}:{error.lineno}: not Python: {error.msg}") from None


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in tree.body if isinstance(node, ast.FunctionDef))


def _is_jit(node: ast.FunctionDef) -> bool:
    return any(decorator_name(one) in _JIT for one in node.decorator_list)


def _parameters(arguments: ast.arguments) -> Iterator[TritonParameter]:
    positional = [*arguments.posonlyargs, *arguments.args]
    first_default = len(positional) - len(arguments.defaults)
    for place, one in enumerate(positional):
        yield TritonParameter(one.arg, _is_constant(one), place >= first_default)
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield TritonParameter(one.arg, _is_constant(one), default is not None)


def _is_constant(argument: ast.arg) -> bool:
    return argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)


def _bound(node: ast.stmt) -> set[str]:
    """The names that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    names = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Import | ast.ImportFrom):
            names |= {item.asname or item.name.partition(".")[0] for item in part.names}
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
        elif isinstance(part, ast.FunctionDef | ast.ClassDef):
            names.add(part.name)
    return names


def _read(node: ast.stmt) -> set[str]:
    """The names that a statement reads; of the decorators of a function for the device, only those kept."""
    parts: list[ast.AST] = [node]
    if isinstance(node, ast.FunctionDef) and _is_jit(node):
        kept = [one for one in node.decorator_list if decorator_name(one) in _JIT]
        parts = [*kept, node.args, *node.body, *([node.returns] if node.returns else [])]
    return {
        name.id
        for part in parts
        for name in ast.walk(part)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)
    }
