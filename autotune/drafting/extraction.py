"""Find a kernel inside a string of another program in C or Python.

Raw strings of C++ need no copy: every reader of sources looks into them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tree_sitter import Node

from autotune.core.syntax import parse_module
from autotune.errors import InputError
from autotune.sources.bare_code import bare_code
from autotune.sources.tree import SourceTree, descendants
from autotune.sources.triton_module import why_no_kernel

_KERNEL = re.compile(r"\b(?:__global__|__kernel)\b|\bkernel\s+(?:void|__attribute__)\b")
_WRITE_IT = "let the program write the text into a file, and give that to autotune new"


class Literal(NamedTuple):
    """A string of a program, and the line where it begins."""

    text: str
    line: int
    is_whole: bool = True  # False: the program changes it

    @property
    def suffix(self) -> str:
        """That of a file with the kernel in it."""
        return ".cu" if "__global__" in self.text else ".cl"


def extracted(path: Path, entry: str | None) -> Literal | None:
    """The first string with a kernel, that with `entry` if one has it; None where no kernel is in a string.

    Raises InputError for a file in Python without one.
    """
    is_python = path.suffix == ".py"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None  # whoever reads it as a kernel says so
    literals = _python_strings(path, text) if is_python else _other_strings(path, text)
    with_kernel = [
        literal
        for literal in literals
        if _KERNEL.search(literal.text) and ("{" in literal.text or not literal.is_whole)
    ]
    if entry is not None:
        named = re.compile(rf"\b{re.escape(entry)}\s*\(")
        with_kernel = [one for one in with_kernel if named.search(one.text)] or with_kernel
    chosen = next((one for one in with_kernel if one.is_whole), None)
    if chosen is not None:
        return chosen
    if with_kernel:
        place = f"{path}:{with_kernel[0].line}"
        raise InputError(f"{place}: the program puts this kernel together when it runs: {_WRITE_IT}")
    if is_python:
        if line := next((literal.line for literal in literals if "@triton.jit" in literal.text), 0):
            raise InputError(f"{path}:{line}: a kernel in Triton is in this string: {_WRITE_IT}")
        raise InputError(
            why_no_kernel(text, path)
            or f"{path}: no kernel found: no function under @triton.jit, and no string with a kernel in CUDA "
            "C++ or OpenCL C; name the file that has it"
        )
    return None


def _other_strings(path: Path, text: str) -> list[Literal]:
    """The plain strings of a program in C or C++, neighbours joined.

    None if it has kernels elsewhere.
    """
    if not _KERNEL.search(text) or _KERNEL.search(bare_code(text)):
        return []
    tree = SourceTree(text)
    nodes = [
        node for node in descendants(tree.root) if node.type in ("concatenated_string", "string_literal")
    ]
    return [
        Literal("".join(_contents(tree, node)), node.start_point.row + 1)
        for node in nodes
        if node.parent is None or node.parent.type != "concatenated_string"
    ]


def _contents(tree: SourceTree, string: Node) -> Iterator[str]:
    """The contents of the strings that stand after each other, whose escapes are Python's, too."""
    for node in descendants(string):
        if node.type == "string_literal":
            with suppress(SyntaxError, ValueError):
                yield ast.literal_eval(tree.text[node.start_byte : node.end_byte])


def _python_strings(path: Path, text: str) -> list[Literal]:
    """The strings of a program in Python, without its documentation."""
    try:
        tree = parse_module(text)
    except SyntaxError as error:
        raise InputError(f"{path}:{error.lineno}: not Python: {error.msg}") from None
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    changed = {id(part) for node in ast.walk(tree) for part in _changed(node)}
    return [
        Literal(node.value, node.lineno, id(node) not in changed)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents
    ]


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """The strings that an expression makes another text of."""
    match node:
        case ast.JoinedStr(parts):
            yield from parts
        case ast.BinOp(left, ast.Mod() | ast.Add(), right):
            yield from (left, right)
        case ast.Call(ast.Attribute(text, "format" | "format_map" | "replace")):
            yield text
        case ast.Call(function, [text, *_]) if ast.unparse(function).rpartition(".")[2] == "Template":
            yield text
