"""Cut the host's functions from a CUDA source; lines keep their numbers.

A kernel's file often also holds a host program, whose libraries a compiler of device code does not have.
Kernels cannot call host functions, so they lose nothing. The source is parsed with all branches of its
conditions; what the parser cannot read stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from autotune.errors import InputError
from autotune.sources.bare_code import blank, without_comments
from autotune.sources.tree import SourceTree, descendants, field

_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]|(?<=\\)\n)*)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_FOR_DEVICE = frozenset(("__device__", "__global__", "constexpr", "__constant__", "__shared__"))
_ATTRIBUTES = re.compile(
    r"\b(?:__align__|__builtin_align__|alignas)\s*\([^()]*\)|\b__launch_bounds__\s*\([^()]*\)"
)
_HOST_TYPES = re.compile(
    r"\bstd::(?:vector|string|map|set|list|unordered_\w+|shared_ptr|unique_ptr|function|chrono|mutex|thread|"
    r"[io]?f?stream)\b|\bcuda(?:Event|Stream|Graph|Array)_t\b|\bFILE\b|\bthrust::(?:device|host)_vector\b"
)
_SCOPES = ("namespace_definition", "linkage_specification", "declaration_list")
_TYPES = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier")


def device_part(source: str) -> str:
    """The source with functions and types that only the host uses replaced by spaces."""
    code = without_comments(source)
    words = _words_for_device(code)
    plain = _ATTRIBUTES.sub(
        lambda found: blank(found[0]), _DIRECTIVE.sub(lambda found: blank(found[0]), code)
    )
    try:
        tree = SourceTree(plain)
    except InputError:  # of the time that is allowed
        return source
    kept = list(source)
    for node in _of_host(tree, tree.root, words):
        kept[node.start_byte : node.end_byte] = _blank(source[node.start_byte : node.end_byte])
    return "".join(kept)


def _words_for_device(code: str) -> frozenset[str]:
    """The words that make a declaration one for the device, macros that stand for them included."""
    macros = [(name, {*_WORD.findall(text)}) for name, text in _MACRO.findall(code)]
    words = _FOR_DEVICE
    while more := {name for name, text in macros if name not in words and words & text}:
        words |= more
    return words


def _of_host(tree: SourceTree, scope: Node, words: frozenset[str]) -> Iterator[Node]:
    """The declarations and definitions in a scope that only the host uses."""
    for node in scope.named_children:
        body = field(node, "body")
        if node.type == "linkage_specification" and body is not None and body.type != "declaration_list":
            if _is_of_host(tree, body, words):  # `extern "C"` before one function
                yield node
        elif node.type in _SCOPES:
            yield from _of_host(tree, body or node, words)
        elif _is_of_host(tree, node, words):
            yield node


def _is_of_host(tree: SourceTree, node: Node, words: frozenset[str]) -> bool:
    """True for what no device uses."""
    text = tree.text[node.start_byte : node.end_byte]
    inside = node.named_children[-1] if node.type == "template_declaration" else node
    body = field(inside, "body")
    head = tree.text[node.start_byte : body.start_byte if body else node.end_byte]
    if words & {*_WORD.findall(head)}:
        return False
    match inside.type:
        case "function_definition":  # macros may stand for the words before one without a type
            return field(inside, "type") is not None or "::" in head
        case "template_instantiation":
            return True
        case "declaration":
            return _is_host_declaration(tree, inside, text)
    return inside.type in _TYPES and body is not None and _HOST_TYPES.search(text) is not None


def _is_host_declaration(tree: SourceTree, node: Node, text: str) -> bool:
    """True for a prototype, and a variable that is not constant."""
    kind = field(node, "type")
    if kind is not None and kind.type in _TYPES and field(kind, "body") is not None:
        return _HOST_TYPES.search(text) is not None
    words = {
        tree.of(one) for one in node.children if one.type in ("type_qualifier", "storage_class_specifier")
    }
    declared = node.children_by_field_name("declarator")
    parts = [one for each in declared for one in descendants(each)]
    if any(one.type == "function_declarator" for one in parts):
        return "typedef" not in words
    return bool(declared) and "const" not in words


def _blank(text: str) -> str:
    """Replace a text by spaces, except line ends and preprocessor directives."""
    kept, start = [], 0
    for directive in _DIRECTIVE.finditer(text):
        kept += [blank(text[start : directive.start()]), directive[0]]
        start = directive.end()
    return "".join((*kept, blank(text[start:])))
