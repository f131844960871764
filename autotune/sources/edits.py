"""Change a source where its syntax tree says: each edit is at the place where the file itself has the code.

A source is read for the macros of one configuration. What only a macro stands for is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from tree_sitter import Node

from autotune.sources.kernel_source import Function, KernelSource
from autotune.sources.tree import descendants

_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*\n", re.MULTILINE)


class TextEdit(NamedTuple):
    """A part of a text, and what replaces it."""

    begin: int
    end: int
    text: str


def edited(text: str, edits: Iterable[TextEdit]) -> str:
    """A text after edits that do not overlap."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.begin] + edit.text + text[edit.end :]
    return text


def span(source: KernelSource, node: Node | None) -> tuple[int, int] | None:
    """Where the source has a node; None for one that only a macro has."""
    place = source.code.span(node.start_byte, node.end_byte) if node is not None else None
    if place is None:
        return None
    text = source.original[slice(*place)]
    ahead = max((line.end() for line in _DIRECTIVE.finditer(text)), default=0)  # of the call of a macro
    begin = ahead + len(text[ahead:]) - len(text[ahead:].lstrip())
    return place[0] + begin, place[1] - len(text) + len(text.rstrip())


def instead(source: KernelSource, node: Node | None, new: str) -> TextEdit | None:
    """The edit that replaces a node, if that can be done; `{}` in the new text is the old one."""
    place = span(source, node)
    old = source.original[slice(*place)] if place else "#"
    return TextEdit(*place, new.format(old)) if place and "#" not in old else None


def reached(source: KernelSource, entries: Iterable[str]) -> list[Function]:
    """The functions that kernels use, without those of portable.h and of a source's host."""
    by_name: dict[str, list[Function]] = {}
    for function in source.device_functions:
        by_name.setdefault(function.name, []).append(function)
    left, functions = [*entries], set()
    while left:
        name = left.pop()
        if name not in functions:
            functions.add(name)
            for function in by_name.get(name, ()):
                left += words(source, function.node) & by_name.keys()
    return [one for name in by_name if name in functions for one in by_name[name]]


def words(source: KernelSource, node: Node) -> set[str]:
    """The names in a node."""
    return {source.tree.of(one) for one in descendants(node) if one.type in ("identifier", "type_identifier")}


def is_statement(node: Node) -> bool:
    """True for an expression whose value nothing uses."""
    return node.parent is not None and node.parent.type == "expression_statement"
