"""The loops of a source, and which of them look endless."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from autotune.sources.kernel_source import KernelSource
from autotune.sources.statements import Loop, changed_by
from autotune.sources.tree import descendants, field


class FoundLoop(NamedTuple):
    """A loop: where it begins, a letter of C or a line of Python, and its head as the source has it."""

    place: int
    head: str
    looks_endless: bool  # nothing that it tests changes in it, and nothing leaves it


def loops_of(source: KernelSource | ast.Module) -> Iterator[FoundLoop]:
    """The loops of a device's functions in C, or of Python, without those over a range, which end."""
    if isinstance(source, ast.Module):
        for part in ast.walk(source):
            if isinstance(part, ast.While):
                head = f"while {ast.unparse(part.test)}"
                yield FoundLoop(part.lineno, head, _looks_endless(part))
        return
    for function in source.device_functions:
        loops = {part.lineno: part for part in function.parts if isinstance(part, Loop)}
        for node in descendants(function.node):
            body, condition = field(node, "body"), field(node, "condition")
            loop = loops.get(node.start_byte)
            if body is None or loop is None or node.type == "for_range_loop":
                continue
            head = source.written(node.start_byte, body.start_byte)
            if condition and condition.start_byte > body.start_byte:
                head = f"{head} ... while {source.written(condition.start_byte, condition.end_byte)}"
            yield FoundLoop(source.code.place(node.start_byte), head, _looks_endless(loop))


def _looks_endless(loop: Loop | ast.While) -> bool:
    tested = {part.id for part in ast.walk(loop.test) if isinstance(part, ast.Name)}
    may_change = any(isinstance(part, ast.Call | ast.Subscript) for part in ast.walk(loop.test))
    leaves = any(isinstance(part, ast.Break | ast.Return) for part in ast.walk(loop))
    return not (may_change or leaves or tested & {name.id for name, _ in changed_by(loop)})
