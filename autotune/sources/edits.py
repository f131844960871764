"""Change a source where its syntax tree says: each edit is at the place where the file itself has the code.

A source is read for the macros of one configuration. What only a macro stands for is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from tree_sitter import Node

from autotune.sources.kernel_source import Function, KernelSource
from autotune.sources.tree import field
from autotune.sources.type_layouts import TypeLayouts

_CONDITIONS = ("if_statement", "conditional_expression")
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
                left += words(source, live(source, function)) & by_name.keys()
    return [one for name in by_name if name in functions for one in by_name[name]]


def constants_in(source: KernelSource, function: Function) -> TypeLayouts:
    """The types and constants of a source that the names of a function do not hide."""
    types = TypeLayouts.compiled(source)
    passed = {one.name for one in function.parameters} | {one.name for one in function.template or ()}
    hidden = (passed | function.declared.keys()) - source.code.macros.keys()
    known = {name: value for name, value in types.constants.items() if name not in hidden}
    return replace(types, constants=known)


def live(source: KernelSource, function: Function) -> Iterator[Node]:
    """All nodes of a function, without the sides that constant conditions decide against."""
    constant = constants_in(source, function).constant
    left = [function.node]
    while left:
        node = left.pop()
        yield node
        value = constant(source.tree.of(field(node, "condition"))) if node.type in _CONDITIONS else None
        dead = None if value is None else field(node, "alternative" if value else "consequence")
        left += reversed([child for child in node.children if child != dead])


def words(source: KernelSource, nodes: Iterable[Node]) -> set[str]:
    """The names among nodes."""
    return {source.tree.of(one) for one in nodes if one.type in ("identifier", "type_identifier")}


def is_statement(node: Node) -> bool:
    """True for an expression whose value nothing uses."""
    return node.parent is not None and node.parent.type == "expression_statement"
