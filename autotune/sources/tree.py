"""Parse C, C++, CUDA and OpenCL with tree-sitter, under a limit of time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from time import thread_time

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from autotune.errors import InputError
from autotune.sources.bare_code import without_comments

_LIMIT_S, _LIMIT_S_PER_MB = 2.0, 3.0  # what is no code at all may take minutes
_CHUNK = 65_536  # letters
_MISTAKES = 16  # in one expression, each of which hides the next
_TEMPLATES = """
    (template_function name: (identifier) @name
        arguments: (template_argument_list (binary_expression operator: ["&&" "||"])) @list)
"""
_FUNCTIONS = "(function_declarator declarator: (identifier) @function)"
_VALUE = re.compile(r"([(=,!&|<>?:+*/%-]\s*)\((\s*\w+\s*)\)(?=\s*&&)")  # read as a cast of what follows


class SourceTree:
    """The syntax tree of a text, whose nodes give their text."""

    def __init__(self, text: str) -> None:
        if "*/" in without_comments(text):  # the parser takes seconds to go on after many of them
            raise InputError("the source has a */ that ends no comment")
        text = _VALUE.sub(r"\1 \2 ", text)
        self.text = text.encode("ascii", "replace").decode()  # a letter is a byte
        self.root = self._without_mistaken_templates()

    def of(self, node: Node | None) -> str:
        """The text of a node, with its spaces as one each; empty without one."""
        return "" if node is None else " ".join(self.text[node.start_byte : node.end_byte].split())

    def _without_mistaken_templates(self) -> Node:
        """The tree in which `(x < n && y >= 0)` is no `x<n && y>`, as the parser takes it.

        The parser gets a > in place of such a <, which reads the same otherwise; the text keeps it.
        """
        data = bytearray(self.text.encode())
        root = _parsed(bytes(data))
        for _ in range(_MISTAKES if "&&" in self.text or "||" in self.text else 0):
            templates = [match for _, match in QueryCursor(_query(_TEMPLATES)).matches(root)]
            found = QueryCursor(_query(_FUNCTIONS)).captures(root) if templates else {}
            functions = {self.of(node) for node in found.get("function", ())}
            lists = (one["list"][0] for one in templates if self.of(one["name"][0]) not in functions)
            mistaken = [node.start_byte for node in lists]
            if not mistaken:
                break
            for place in mistaken:
                data[place] = ord(">")
            root = _parsed(bytes(data))
        return root


def _parsed(data: bytes) -> Node:
    limit_s = _LIMIT_S + _LIMIT_S_PER_MB * len(data) / 1e6
    end = thread_time() + limit_s
    try:
        tree = Parser(_language()).parse(
            lambda place, _: data[place : place + _CHUNK], progress_callback=lambda *_: thread_time() > end
        )
    except ValueError:
        raise InputError(f"the source takes more than {limit_s:.0f} s to parse") from None
    return tree.root_node


@cache
def _language() -> Language:
    return Language(tree_sitter_cuda.language())


@cache
def _query(pattern: str) -> Query:
    return Query(_language(), pattern)


def descendants(node: Node) -> Iterator[Node]:
    """A node and all below it, in the order of the text."""
    left = [node]
    while left:
        node = left.pop()
        yield node
        left += reversed(node.children)


def field(node: Node | None, name: str) -> Node | None:
    """The child of a node in a field; None without node or child."""
    return None if node is None else node.child_by_field_name(name)
