"""Words beside types and names that nothing defines: what the host's macros may make of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tree_sitter import Node

from autotune.sources.dialects import OPENCL
from autotune.sources.statements import declarator_name, declarators
from autotune.sources.tree import SourceTree, descendants, field

_SPACES = ("", "__global", "__constant", "__local")  # the later ones are surer


def open_words(tree: SourceTree, outer: Iterable[Node], dialect: str) -> Mapping[str, str]:
    """The words before types and after parameters, with what they stand for.

    Beside a type it is a qualifier: in OpenCL that of an array or a pointer, else nothing.
    """
    words: dict[str, str] = {}
    for node in outer:
        if not node.has_error:
            continue
        for word, space in (
            *_of_function(tree, node),
            *_of_parameters(tree, node),
            *_of_variables(tree, node),
        ):
            surest = max(space, words.get(word, ""), key=_SPACES.index)
            words[word] = surest if dialect == OPENCL else ""
    return words


def _of_function(tree: SourceTree, node: Node) -> Iterator[tuple[str, str]]:
    """A word before the type of a function."""
    kind = _word_of(field(node, "type"))
    after = field(node, "type").next_sibling if kind is not None else None  # type: ignore[union-attr]
    if kind is not None and after is not None and after.is_error:
        yield tree.of(kind), ""


def _of_parameters(tree: SourceTree, function: Node) -> Iterator[tuple[str, str]]:
    """Words before the types of parameters and beside their names, of which the body uses one."""
    body = field(function, "body")
    used = {tree.of(one) for one in descendants(body) if one.type == "identifier"} if body else set()
    for node in _erroneous(function):
        for child in node.named_children if node.type == "parameter_list" else ():
            declared = field(child, "declarator")
            if child.type != "parameter_declaration" or declared is None:
                continue
            name, kind = tree.of(declarator_name(declared)), _word_of(field(child, "type"))
            before, after = _error(child), child.next_named_sibling
            if kind is not None and before is not None and (name in used or tree.of(before) not in used):
                yield tree.of(kind), "__global" if declared.type == "pointer_declarator" else ""
            elif before is not None:  # `int n MORE`
                yield name, ""
            if (inside := _error(declared)) is not None:  # `float *y MORE`
                yield name if tree.of(inside) in used else tree.of(inside), ""
            if after is not None and after.is_error and tree.of(after).isidentifier():  # `float *ALONE x`
                yield name if tree.of(after) in used else tree.of(after), ""


def _of_variables(tree: SourceTree, outer: Node) -> Iterator[tuple[str, str]]:
    """Words before the types of variables."""
    for node in _erroneous(outer):
        kind = _word_of(field(node, "type"))
        if node.type == "declaration" and kind is not None:
            parts = [*declarators(field(node, "declarator"))]
            arrays = [part for part in parts if part.type == "array_declarator"]
            is_pointer = any(part.type == "pointer_declarator" for part in parts)
            if _error(node) is not None or any(_error(one) is not None for one in arrays):
                array = "__constant" if node == outer else "__local"
                yield tree.of(kind), "__global" if is_pointer else array if arrays else ""


def _word_of(kind: Node | None) -> Node | None:
    """The name in a type, `WORD unsigned` included; None for a type of the language."""
    if kind is not None and kind.type == "sized_type_specifier":
        kind = field(kind, "type")
    return kind if kind is not None and kind.type == "type_identifier" else None


def _error(node: Node) -> Node | None:
    """The single word among the parts of a node that the parser has no place for."""
    errors = (child for child in node.children if child.is_error and child.named_child_count == 1)
    return next((error for error in errors if error.named_children[0].type == "identifier"), None)


def _erroneous(node: Node) -> Iterator[Node]:
    """The nodes with something that the parser does not understand."""
    left = [node]
    while left:
        node = left.pop()
        yield node
        left += (child for child in node.children if child.has_error)
