"""Cut the host's functions from a source; lines keep their numbers.

A kernel's file often also holds a host program, whose libraries a compiler of device code does not have.
Kernels cannot call host functions, so they lose nothing. The source is parsed with all branches of its
conditions; text that the parser cannot read stays. Where that is not enough, as with headers for programs,
only what kernels name is left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import takewhile
from typing import TypeVar

from tree_sitter import Node

from autotune.compilers.cuda_headers import is_cuda_header
from autotune.errors import CompileError, InputError
from autotune.sources.bare_code import blank, without_comments
from autotune.sources.dialects import CUDA, OPENCL, dialect_of, with_own_words, words_of
from autotune.sources.expansion import TooLong
from autotune.sources.macros import definition
from autotune.sources.preprocessed import preprocessed
from autotune.sources.preprocessor import IfCondition, compiled_lines
from autotune.sources.statements import declarator_name
from autotune.sources.tree import SourceTree, descendants, field

_T = TypeVar("_T")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]|(?<=\\)\n)*)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_FOR_DEVICE = frozenset(
    ("__device__", "__global__", "constexpr", "__constant__", "__shared__", "KERNEL", "DEVICE")
)
_OF_LAMBDA = re.compile(r"(?<=\])\s*(?:__(?:host|device)__\s*)+(?=[({])")  # which is its function's
# What NVRTC defines, and its toolkit's headers, by which helper_cuda.h has functions for programs.
_OF_COMPILER = "".join(
    f"#define {name} 1\n" for name in ("__CUDACC_RTC__", "__CUDA_RUNTIME_H__", "__DRIVER_TYPES_H__")
)
_ATTRIBUTES = re.compile(
    r"\b(?:__align__|__builtin_align__|alignas)\s*\([^()]*\)|\b__launch_bounds__\s*\([^()]*\)"
)
_SCOPES = ("namespace_definition", "linkage_specification", "declaration_list")


@lru_cache(maxsize=2)  # a file is read more than once
def device_part(source: str) -> str:
    """The source with functions and variables that only the host uses replaced by spaces."""
    code = without_comments(source)
    tree = _tree(code)
    if tree is None:
        return source
    words = _words_for_device(code)
    of_host = (node for node in _outer(tree.root) if _is_of_host(tree, node, words))
    return _without(source, ((node.start_byte, node.end_byte) for node in of_host))


def without_host_code(build: Callable[[str], _T], source: str, names: Iterable[str], dialect: str) -> _T:
    """Build a source, or else what its kernels need of it: one that is not OpenCL alone may have host code.

    `build` raises CompileError.
    """
    try:
        return build(source)
    except CompileError:
        if dialect_of(source) == OPENCL:
            raise
        return build(needed_part(source, names, dialect))  # a kernel's own error is in both


def needed_part(source: str, names: Iterable[str], dialect: str = CUDA) -> str:
    """The source with spaces in place of all but its kernels, and what these and other `names` need.

    It is parsed with its macros expanded, in the branches that a device's compiler takes. Only CUDA needs a
    word to call a function, and only OpenCL has no headers of CUDA and C++, which are left out for it.
    """
    if dialect == CUDA:
        source = _OF_LAMBDA.sub(lambda match: blank(match[0]), _without_foreign_errors(source))
    if dialect == OPENCL:
        source = _INCLUDE.sub(lambda match: blank(match[0]) if is_cuda_header(match[1]) else match[0], source)
    try:
        text = with_own_words(source) if dialect == OPENCL else source
        code = preprocessed(text, {}, f"{words_of(dialect)}{_OF_COMPILER}")
        tree = _tree(code.text)
    except (TooLong, RecursionError):
        return source
    if tree is None:
        return source
    kernels = {word for name in names for word in _last_word(name.partition("(")[0])} or {"__global__"}
    roots = {"operator"} | ({"__global__"} & kernels)  # words of what no name says is needed
    left = [(node, _declared(tree, node, dialect, roots)) for node in _outer(tree.root)]
    declared = {word.rstrip("(") for _, words in left for word in words}
    if not kernels <= declared:  # they were not found
        return source
    fresh = roots.union(kernels, (f"{kernel}(" for kernel in kernels), *map(_WORD.findall, names))
    stay = [node for node, _ in left if code.span(node.start_byte, node.end_byte) is None]  # parts of a macro
    fresh |= _named_in(tree, stay)
    named: set[str] = set()
    while fresh:
        named |= fresh
        needed = [node for node, names in left if names & named]
        left = [(node, names) for node, names in left if not names & named]
        fresh = _named_in(tree, needed) - named
    of_host = (member for node in descendants(tree.root) for member in _members_of_host(tree, node))
    spans = (code.span(node.start_byte, node.end_byte) for node in (*(node for node, _ in left), *of_host))
    kept = _without(source, (span for span in spans if span))
    constants = _constants(tree) if dialect == CUDA else ()  # that nvcc takes for constants, too
    for place in sorted(map(code.place, constants), reverse=True):
        if kept.startswith("const", place):
            kept = f"{kept[:place]}constexpr{kept[place + len('const') :]}"
    return kept


def _named_in(tree: SourceTree, nodes: Sequence[Node]) -> set[str]:
    """The words of declarations, and their calls, such as `sum(`."""
    texts = (tree.text[node.start_byte : node.end_byte] for node in nodes)
    calls = (part for node in nodes for part in descendants(node) if part.type == "call_expression")
    called = {f"{name}(" for call in calls for name in _last_word(tree.of(field(call, "function")))}
    return called.union(*map(_WORD.findall, texts))


def _last_word(name: str) -> Sequence[str]:
    """The own name in one with scopes, such as `own::first`, without the arguments of a template."""
    return _WORD.findall(name.partition("<")[0])[-1:]


def _without_foreign_errors(source: str) -> str:
    """The source without each `#error` to which no parameter leads: a header's, for other compilers."""
    lines = [*compiled_lines(source)]
    rendered = takewhile(lambda line: line.directive == "define" and not line.condition, lines)
    parameters = {macro[0] for line in rendered if (macro := definition(line.rest))}
    kept = list(source)
    for line in lines:
        if line.directive == "error" and parameters.isdisjoint(_tested(line.condition)):
            begin, end = source.rfind("\n", 0, line.place) + 1, line.place + len(line.rest)
            kept[begin:end] = blank(source[begin:end])
    return "".join(kept)


def _tested(condition: IfCondition | None) -> Iterator[str]:
    """The words of a condition, of the branches before it, and of those around it."""
    if condition is not None:
        yield from _WORD.findall(condition.rest)
        yield from _tested(condition.before)
        yield from _tested(condition.outer)


def _constants(tree: SourceTree) -> Iterator[int]:
    """Where `const` stands before a number outside of functions whose value the source gives."""
    numbers: set[str] = set()  # types of the source that are numbers
    for node in _outer(tree.root):
        kind = field(node, "type")
        is_number = kind is not None and (kind.type == "primitive_type" or tree.of(kind) in numbers)
        if is_number and node.type == "type_definition":
            numbers.update(map(tree.of, node.children_by_field_name("declarator")))
        declared = node.children_by_field_name("declarator") if node.type == "declaration" else []
        names = [field(part, "declarator") for part in declared if part.type == "init_declarator"]
        if is_number and names and all(name and name.type == "identifier" for name in names):
            words = {tree.of(word): word.start_byte for word in node.children}
            if "const" in words and "constexpr" not in words:
                yield words["const"]


def _members_of_host(tree: SourceTree, node: Node) -> Iterator[Node]:
    """The functions in the body of a type that no device can call."""
    for member in node.named_children if node.type == "field_declaration_list" else ():
        body = field(member, "body")
        head = tree.text[member.start_byte : body.start_byte if body else member.end_byte]
        is_function = any(part.type == "function_declarator" for part in _before_bodies(member))
        words = _WORD.findall(head)
        if is_function and _FOR_DEVICE.isdisjoint(words) and words[-1] not in ("default", "delete"):
            yield member


def _before_bodies(node: Node) -> Iterator[Node]:
    """A node and all below it, but for the bodies of functions and types."""
    yield node
    for part in node.children:
        if part.type not in ("compound_statement", "field_declaration_list"):
            yield from _before_bodies(part)


def _tree(code: str) -> SourceTree | None:
    """The tree of a source without its directives; None if it takes too long."""
    for unread in (_DIRECTIVE, _ATTRIBUTES):
        code = unread.sub(lambda match: blank(match[0]), code)
    try:
        return SourceTree(code)
    except InputError:
        return None


def _without(source: str, spans: Iterable[tuple[int, int]]) -> str:
    """A source with parts replaced by spaces."""
    kept = list(source)
    for begin, end in spans:
        kept[begin:end] = _blank_code(source[begin:end])
    return "".join(kept)


def _outer(scope: Node) -> Iterator[Node]:
    """The declarations in a scope and in the scopes inside it."""
    for node in scope.named_children:
        body = field(node, "body")
        if node.type in _SCOPES and (body is None or body.type == "declaration_list"):
            yield from _outer(body or node)
        else:
            yield node


def _declared(tree: SourceTree, node: Node, dialect: str, roots: Set[str]) -> set[str]:
    """The words by which kernels need a declaration; none for a function that no device can call.

    But for CUDA kernels may call any: a call needs it, such as `sum(`, and a variable `sum` does not.
    """
    inside = _inside(node)
    kind, head = field(inside, "type"), _head(tree, node)
    words = {*_WORD.findall(head)}
    if head.startswith("using namespace"):
        return set() if dialect == OPENCL else {*roots}
    if node.is_error:
        return set() if words.isdisjoint(_FOR_DEVICE) else words
    is_function = "function_declarator" in {part.type for part in _before_bodies(inside)}
    is_host = words.isdisjoint(_FOR_DEVICE) and inside.type in ("function_definition", "declaration")
    if dialect == CUDA and is_function and is_host:
        return set()
    named = [field(inside, "name"), field(kind, "name") if field(kind, "body") else None]
    named += map(declarator_name, inside.children_by_field_name("declarator"))
    if inside.type == "using_declaration":
        named += inside.named_children[-1:]
    if inside.type != "function_definition":
        named += [field(part, "name") for part in descendants(inside) if part.type == "enumerator"]
    names = {name for part in named for name in _last_word(tree.of(part))}
    if dialect != CUDA and is_function:
        names = {f"{name}(" for name in names}
    return names | (words & roots)


def _words_for_device(code: str) -> frozenset[str]:
    """The words that make a declaration one for the device, macros that stand for them included."""
    words = _FOR_DEVICE
    macros = [(name, {*_WORD.findall(text)}) for name, text in _MACRO.findall(code)]
    while more := {name for name, text in macros if name not in words and words & text}:
        words |= more
    return words


def _is_of_host(tree: SourceTree, node: Node, words: frozenset[str]) -> bool:
    """True for a function that no device can call, its prototype, and a variable that is not constant."""
    inside = _inside(node)
    kind, head = field(inside, "type"), _head(tree, node)
    if words & {*_WORD.findall(head)} or "__global__" in tree.of(node):  # a macro hides what `node` is
        return False
    before = node.prev_sibling  # a macro without a semicolon takes the first words of what follows it
    if before is not None and before.is_error and words & {*_WORD.findall(tree.of(before))}:
        return False
    if inside.type == "function_definition":  # macros may stand for the words before one without a type
        return kind is not None or "::" in head
    if inside.type != "declaration" or field(kind, "body"):
        return inside.type == "template_instantiation"
    declared = inside.children_by_field_name("declarator")
    parts = (part for declarator in declared for part in descendants(declarator))
    is_prototype = any(part.type == "function_declarator" for part in parts)
    written = {tree.of(word) for word in inside.children}
    return bool(declared) and ("typedef" if is_prototype else "const") not in written


def _head(tree: SourceTree, node: Node) -> str:
    """The text of a declaration before the body of its function or type."""
    body = field(_inside(node), "body")
    return tree.text[node.start_byte : body.start_byte if body else node.end_byte]


def _inside(node: Node) -> Node:
    """A definition or declaration without the `template` or `extern "C"` before it."""
    while node.type in ("template_declaration", "linkage_specification") and node.named_children:
        node = node.named_children[-1]
    return node


def _blank_code(text: str) -> str:
    """Replace a text by spaces, except line ends and preprocessor directives."""
    kept, start = [], 0
    for directive in _DIRECTIVE.finditer(text):
        kept += [blank(text[start : directive.start()]), directive[0]]
        start = directive.end()
    return "".join((*kept, blank(text[start:])))
