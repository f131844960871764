"""Find mistakes to plant in a source in C: where its syntax tree has what each kind changes.

A source is read for the macros of one configuration; each edit is at the place where the file itself has the
code. So what only a macro stands for is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from itertools import islice

from tree_sitter import Node

from autotune.sources.edits import TextEdit, constants_in, instead, is_statement, live, reached, span, words
from autotune.sources.facts import BARRIERS, WARP_BARRIERS
from autotune.sources.kernel_source import Function, KernelSource, read_kernel_source
from autotune.sources.tree import descendants, field
from autotune.strength.mistakes import (
    ACCUMULATION,
    BARRIER,
    GUARD,
    IDENTITY,
    NARROW,
    NEIGHBOUR,
    OFF_BY_ONE,
    PADDING,
    RESET,
    SWAPPED,
    TAIL,
    TICKET,
    WRONG_BOUNDS,
    Mistake,
    other_value,
)

_BARRIERS = (*BARRIERS, *WARP_BARRIERS, "mem_fence", "__threadfence", "__threadfence_block")
_LOOPS = ("for_statement", "while_statement")
_INTEGERS = {
    **dict.fromkeys(("int", "long", "long long", "ptrdiff_t"), "short"),
    **dict.fromkeys(
        ("size_t", "unsigned", "unsigned int", "unsigned long", "uint", "ulong"), "unsigned short"
    ),
}
# As many bits as the next narrower type has, without that type: the high part of a product.
_NARROWED = {
    "float": "{{ {0} volatile float wide_ = {1} * 8193.0f; {1} = wide_ - (wide_ - {1}); }}",
    "double": "{{ {0} {1} = (float)({1}); }}",
    "int": "{{ {0} {1} = (short)({1}); }}",
    "unsigned": "{{ {0} {1} = (unsigned short)({1}); }}",
}
_CHANGES = ("expression_statement", "declaration")


def mistakes_in_c(
    text: str, values: Mapping[str, str], dialect: str, entries: frozenset[str]
) -> list[Mistake]:
    """The mistakes that can be planted in a configuration's part of a source.

    Raises InputError for a source that cannot be read. The includes of the text are resolved; `values` are
    the macros of the configuration, and `entries` the names of the kernels that are launched.
    """
    source = read_kernel_source(text, values, dialect)
    mistakes: dict[Mistake, None] = {}
    functions = reached(source, entries)
    kernels = [function for function in functions if function.name in entries]
    passed = {item.name for kernel in kernels for item in kernel.parameters if not item.is_shared}
    counters = passed & {name for function in functions for name in _counted(source, function)}
    for function in functions:
        reading = _Reading(source, function, values, counters)
        for node in live(source, function):
            mistakes |= dict.fromkeys(reading.of(node))
    return list(mistakes)


def _counted(source: KernelSource, function: Function) -> Iterator[str]:
    """The variables that atomics of a function change."""
    for node in descendants(function.node):
        if node.type == "call_expression" and _is_atomic(source, node):
            names = (one for one in descendants(node) if one.type == "identifier")
            yield from islice(map(source.tree.of, names), 1, 2)  # the first is the function


def _is_atomic(source: KernelSource, call: Node) -> bool:
    return source.tree.of(field(call, "function")).lower().startswith("atom")


class _Reading:
    """Finds the mistakes of one function; `counters` are tickets: what kernels are given and count in."""

    def __init__(
        self, source: KernelSource, function: Function, values: Mapping[str, str], counters: Set[str]
    ) -> None:
        self._source, self._tree, self._values = source, source.tree, values
        self._counters, self._constant = counters, constants_in(source, function).constant
        self._types = {parameter.name: parameter.type for parameter in function.parameters}
        self._summed: set[str] = set()  # variables that change by what they are
        for node in descendants(function.node):
            if node.type == "declaration":
                for declared in node.children_by_field_name("declarator"):
                    names = [part for part in descendants(declared) if part.type == "identifier"]
                    if names:
                        self._types[self._tree.of(names[0])] = self._tree.of(field(node, "type"))
            elif node.type == "assignment_expression" and self._is_sum(node):
                self._summed |= {self._base(field(node, "left"))}

    def of(self, node: Node) -> Iterator[Mistake]:
        match node.type:
            case "call_expression":
                if self._tree.of(field(node, "function")) in _BARRIERS and is_statement(node):
                    yield from self._instead(BARRIER, node, "(void)0")
                elif _is_atomic(self._source, node):
                    yield from self._in_atomic(node)
            case "binary_expression":
                yield from self._in_binary(node)
            case "if_statement" | "for_statement" | "while_statement":
                yield from self._in_branch(node)
            case "conditional_expression":
                yield from self._in_choice(node)
            case "declaration":
                yield from self._in_declaration(node)
            case "assignment_expression":
                yield from self._in_assignment(node)
            case "subscript_expression":
                yield from self._in_subscript(node)

    def _in_binary(self, node: Node) -> Iterator[Mistake]:
        left, right = field(node, "left"), field(node, "right")
        operator = field(node, "operator")
        word = self._tree.of(operator)
        if word in WRONG_BOUNDS and not self._is_fixed(node):
            for new in WRONG_BOUNDS[word]:
                yield from self._instead(OFF_BY_ONE, operator, new)
        elif word == "&&":
            for part in (left, right):
                if self._compares(part):
                    yield from self._instead(GUARD, part, "1")
        elif word == "+" and left is not None and left.type == "binary_expression":
            row = field(left, "left")
            if self._tree.of(field(left, "operator")) == "*" and self._is_index(node):
                yield from self._swapped(row, right)

    def _in_branch(self, node: Node) -> Iterator[Mistake]:
        condition = field(node, "condition")
        inside = field(condition, "value") or condition
        if self._compares(inside):
            if node.type not in _LOOPS:
                yield from self._instead(GUARD, inside, "1")
            if not self._is_fixed(field(inside, "right")):
                yield from self._instead(TAIL, inside, "0")

    def _in_choice(self, node: Node) -> Iterator[Mistake]:
        condition = field(node, "condition")
        if not self._compares(condition):
            return
        yield from self._instead(GUARD, condition, "1")
        alternative = field(node, "alternative")
        if alternative is not None and self._is_fixed(alternative):
            yield from self._instead(PADDING, alternative, other_value(self._tree.of(alternative)))

    def _in_declaration(self, node: Node) -> Iterator[Mistake]:
        kind = field(node, "type")
        if node.parent is not None and node.parent.type in _LOOPS:
            return
        for declared in node.children_by_field_name("declarator"):
            value, name = field(declared, "value"), field(declared, "declarator")
            if declared.type != "init_declarator" or name is None or name.type != "identifier":
                continue
            if value is not None and self._tree.of(name) in self._summed:
                yield from self._instead(IDENTITY, value, other_value(self._tree.of(value)))
            elif not self._is_fixed(value) and self._tree.of(kind) in _INTEGERS:
                yield from self._instead(NARROW, kind, _INTEGERS[self._tree.of(kind)])

    def _in_assignment(self, node: Node) -> Iterator[Mistake]:
        left, right = field(node, "left"), field(node, "right")
        statement = node.parent
        if left is None or statement is None or not is_statement(node):
            return
        if self._is_sum(node):
            kind = self._types.get(self._base(left), "")
            narrowed = _NARROWED.get(self._values.get(kind, kind))
            place, target = span(self._source, statement), self._written(left)
            old = self._source.original[slice(*place)] if place else "#"
            if narrowed and place and target and "#" not in old:
                yield Mistake(ACCUMULATION, (TextEdit(*place, narrowed.format(old, target)),))
        elif right is not None and _is_zero(self._tree.of(right)):
            yield from self._instead(TICKET if self._base(left) in self._counters else RESET, statement, ";")

    def _in_atomic(self, call: Node) -> Iterator[Mistake]:
        given = field(call, "arguments")
        if given is None or given.named_child_count != 2:
            return
        counter, operand = given.named_children
        if self._base(counter) not in self._counters:
            return
        if self._tree.of(field(call, "function")) == "atomicInc":  # which begins again by itself
            yield from self._instead(TICKET, call, f"atomicAdd({self._written(counter)}, 1u)")
        elif _is_zero(self._tree.of(operand)) and is_statement(call):
            yield from self._instead(TICKET, call, "(void)0")

    def _in_subscript(self, node: Node) -> Iterator[Mistake]:
        if _is_written(node) or node.parent is None:
            return
        index = _index(node)
        if index is not None and not self._is_fixed(index) and node.parent.type != "subscript_expression":
            yield from self._instead(NEIGHBOUR, index, "({}) + 1")
        outer = field(node, "argument")
        if outer is not None and outer.type == "subscript_expression":
            yield from self._swapped(_index(outer), index)

    def _instead(self, kind: str, node: Node | None, new: str) -> Iterator[Mistake]:
        """A mistake that replaces a node; `{}` in the new text is the old one."""
        edit = instead(self._source, node, new)
        if edit is not None:
            yield Mistake(kind, (edit,))

    def _swapped(self, left: Node | None, right: Node | None) -> Iterator[Mistake]:
        first, second = self._written(left), self._written(right)
        if first and second and first != second and not (self._is_fixed(left) or self._is_fixed(right)):
            edits = instead(self._source, left, second), instead(self._source, right, first)
            if edits[0] is not None and edits[1] is not None:
                yield Mistake(SWAPPED, (edits[0], edits[1]))

    def _written(self, node: Node | None) -> str:
        """A node's text in the source; empty for a node that only a macro has."""
        place = span(self._source, node)
        return self._source.original[slice(*place)] if place else ""

    def _is_fixed(self, node: Node | None) -> bool:
        """True if nothing in a node can change while the kernel runs."""
        return node is None or not any(
            part.type in ("identifier", "call_expression") and self._tree.of(part) not in self._values
            for part in descendants(node)
        )

    def _is_index(self, node: Node) -> bool:
        """True for a part of an index of an array, or of the value of a whole number."""
        around = node.parent
        while around is not None and around.type not in ("subscript_argument_list", *_CHANGES):
            around = around.parent
        if around is None or around.type != "declaration":
            return around is not None and around.type == "subscript_argument_list"
        return self._tree.of(field(around, "type")) in _INTEGERS

    def _compares(self, node: Node | None) -> bool:
        """True if a condition depends on more than the configuration."""
        is_comparison = node is not None and node.type == "binary_expression"
        return is_comparison and self._constant(self._tree.of(node)) is None

    def _is_sum(self, node: Node) -> bool:
        """True if an assignment computes a variable's new value from its old one."""
        left, right = field(node, "left"), field(node, "right")
        if self._tree.of(field(node, "operator")) != "=":
            return not (right is None or self._is_fixed(right))
        names = words(self._source, descendants(right)) if right is not None else set()
        return left is not None and self._base(left) in names and left.type == "identifier"

    def _base(self, node: Node | None) -> str:
        """The variable that an assignment changes."""
        names = (part for part in descendants(node) if part.type == "identifier") if node is not None else ()
        return self._tree.of(next(iter(names), None))


def _is_zero(text: str) -> bool:
    return text.rstrip(".0fuUlL") == ""


def _index(node: Node) -> Node | None:
    inside = field(node, "indices")
    return inside.named_children[0] if inside is not None and inside.named_child_count == 1 else None


def _is_written(node: Node) -> bool:
    """True for an element that is assigned, changed or pointed at."""
    parent = node.parent
    while parent is not None and parent.type in ("subscript_expression", "field_expression"):
        node, parent = parent, parent.parent
    is_target = parent is not None and parent.type == "assignment_expression"
    return parent is None or (
        (is_target and field(parent, "left") == node)
        or parent.type in ("pointer_expression", "update_expression")
    )
