"""Take one thing out of kernels, and keep the rest of their work: atomics, barriers or checks of bounds.

The result is wrong: only the time is asked for. Without atomics or barriers, memory has other values. So they
are taken out only where no value that a kernel writes to memory decides an index or the end of a loop.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from autotune.errors import InputError
from autotune.sources import tree
from autotune.sources.edits import Edit, edited, instead, is_statement, reached
from autotune.sources.facts import BARRIERS, names_in
from autotune.sources.kernel_source import Function, KernelSource
from autotune.sources.statements import Declared

ATOMICS, BARRIER_CALLS, CHECKS = "atomics", "barriers", "checks of bounds"

_ALL_BARRIERS = (*BARRIERS, "__syncwarp", "sub_group_barrier")
_ATOMIC = re.compile(r"atomic_?(add|sub|min|max|and|or|xor|exch|xchg|inc|dec)", re.IGNORECASE)
_STORE = "WITHOUT_ATOMIC"
_HEAD = f"#define {_STORE}(pointer, value) (*(pointer) = (value))\n"
_ORDERED = ("<", "<=", ">", ">=")
_LEAVES = ("return_statement", "continue_statement", "break_statement")


def without(kind: str, source: KernelSource, entries: frozenset[str]) -> str | None:
    """The text of a source without atomics, barriers or checks of bounds; None if it has none.

    A check is left out whether or not it holds for all threads: run the text on indices before it runs.

    Args:
        kind: What to take out.
        source: The source, read for the macros of a configuration.
        entries: The names of the kernels that are launched.

    Raises:
        InputError: It is there, and cannot be taken out; the message says why.
    """
    functions = reached(source, entries)
    flow = _Flow.of(functions)
    find = {ATOMICS: _atomics, BARRIER_CALLS: _barriers, CHECKS: _Checks(flow.sizes(functions)).edits}[kind]
    found = [edit for function in functions for edit in find(source, function.node)]
    if not found:
        return None
    if None in found:
        raise InputError(f"not all {kind} can be taken out: their results are used, or a macro has them")
    if kind != CHECKS and flow.is_steered():
        raise InputError(
            f"without {kind}, memory has other values, and these decide an index or when a loop ends"
        )
    text = edited(source.original, dict.fromkeys(edit for edit in found if edit is not None))
    return _HEAD + text if kind == ATOMICS else text


def _barriers(source: KernelSource, function: Node) -> Iterator[Edit | None]:
    for node in tree.descendants(function):
        if node.type == "call_expression" and _called(source, node) in _ALL_BARRIERS:
            yield instead(source, node, "(void)0") if is_statement(node) else None


def _atomics(source: KernelSource, function: Node) -> Iterator[Edit | None]:
    """A store of the operand in the place of each atomic: as many accesses, of as many bytes."""
    for node in tree.descendants(function):
        if node.type == "call_expression" and "atomic" in _called(source, node).lower():
            given = tree.field(node, "arguments")
            edit = instead(source, node, "{}")
            name = edit.text.partition("(")[0].strip() if edit else ""
            if (
                edit is None
                or given is None
                or given.named_child_count != 2
                or not is_statement(node)
                or not _ATOMIC.fullmatch(name)
            ):
                yield None
            else:
                yield edit._replace(text=_STORE + edit.text[edit.text.index("(") :])


def _called(source: KernelSource, node: Node) -> str:
    return source.tree.of(tree.field(node, "function"))


@dataclass(frozen=True)
class _Checks:
    """Finds comparisons with what comes from the sizes of a problem, in branches and not in loops."""

    sizes: frozenset[str]

    def edits(self, source: KernelSource, function: Node) -> Iterator[Edit | None]:
        for node in tree.descendants(function):
            if node.type in ("if_statement", "conditional_expression"):
                condition = tree.field(node, "condition")
                leaves = _leaves(tree.field(node, "consequence"))
                for part in _parts(tree.field(condition, "value") or condition):
                    names = {source.tree.of(tree.field(part, side)) for side in ("left", "right")}
                    is_ordered = source.tree.of(tree.field(part, "operator")) in _ORDERED
                    edit = instead(source, part, "0" if leaves else "1")
                    if is_ordered and names & self.sizes and edit is not None:
                        yield edit


def _parts(condition: Node | None) -> Iterator[Node]:
    """The comparisons of a condition."""
    left = [condition] if condition is not None else []
    while left:
        node = left.pop()
        if node.type == "parenthesized_expression":
            left += node.named_children
        elif node.type == "binary_expression":
            operator = tree.field(node, "operator")
            is_joined = operator is not None and operator.type in ("&&", "||")
            sides = [tree.field(node, side) for side in ("left", "right")]
            if is_joined:
                left += [side for side in sides if side is not None]
            else:
                yield node


def _leaves(body: Node | None) -> bool:
    """True if a branch only leaves the function or the turn of a loop."""
    if body is not None and body.type == "compound_statement":
        inside = [one for one in body.named_children if one.type != "comment"]
        body = inside[-1] if inside else None
    return body is not None and body.type in _LEAVES


@dataclass
class _Flow:
    """What the names of several functions get their values from; equal names of two functions count as one.

    Attributes:
        given: The expressions that each name is set to, those of calls included.
        pointers: Names of pointers and arrays.
        fixed: Pointers to memory that no kernel writes.
        turns: The conditions of loops.
        parts: All parts of all statements.
    """

    given: dict[str, list[ast.expr]] = field(default_factory=dict)
    pointers: set[str] = field(default_factory=set)
    fixed: frozenset[str] = frozenset()
    turns: list[ast.expr] = field(default_factory=list)
    parts: list[ast.AST] = field(default_factory=list)

    @classmethod
    def of(cls, functions: list[Function]) -> _Flow:
        """The flow in some functions."""
        flow, own = cls(), {one.name: one for one in functions}
        written, arrays = set[str](), set[str]()
        for function in functions:
            flow.pointers |= {one.name for one in function.parameters if one.pointers}
            if function.is_kernel:
                written |= {one.name for one in function.parameters if one.pointers and not one.is_const}
            for part in function.parts:
                flow._note(part, function, own, arrays)
        flow.pointers |= arrays
        fixed = flow.pointers - written - arrays
        while True:  # a pointer made from another one is fixed if that one is
            lost = {
                name
                for name in fixed
                if any(not flow._is_into(fixed, one) for one in flow.given.get(name, ()))
            }
            if not lost:
                break
            fixed -= lost
        flow.fixed = frozenset(fixed)
        return flow

    def _note(self, part: ast.AST, function: Function, own: dict[str, Function], arrays: set[str]) -> None:
        self.parts.append(part)
        match part:
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=ast.Constant(value=declared), value=value
            ):
                if isinstance(declared, Declared) and declared.is_pointer:
                    self.pointers.add(name)
                elif isinstance(declared, Declared) and declared.extents:
                    arrays.add(name)
                self._set(name, value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._set(name, value)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self._set(name, value)
            case ast.Return(value=value):
                self._set(function.name, value)
            case ast.While(test=test):
                self.turns.append(test)
            case ast.For(target=ast.Name(id=name), iter=iterated):
                self._set(name, iterated)
            case ast.Call(func=ast.Name(id=name), args=given) if name in own:
                for parameter, one in zip(own[name].parameters, given, strict=False):
                    self._set(parameter.name, one)

    def _set(self, name: str, value: ast.expr | None) -> None:
        if value is not None:
            self.given.setdefault(name, []).append(value)

    def _is_into(self, fixed: set[str], value: ast.expr) -> bool:
        """True if an expression points into fixed memory only, or moves a pointer by a number."""
        return (names_in(value) & self.pointers) <= fixed

    def sizes(self, functions: list[Function]) -> frozenset[str]:
        """The names whose values come from numbers that a launch passes."""
        passed = {
            parameter.name
            for function in functions
            if function.is_kernel
            for parameter in function.parameters
            if not parameter.pointers
        }
        return frozenset(self._reached(passed, lambda value: False))

    def is_steered(self) -> bool:
        """True if values that threads write to memory may decide an index, a pointer or the end of a loop."""
        steered = self._reached(set(), self._reads_written)
        for part in self.parts:
            if isinstance(part, ast.Subscript) and self._is_one_of(steered, part.slice):
                return True
        moved = (value for name in self.pointers for value in self.given.get(name, ()))
        return any(self._is_one_of(steered, value) for value in (*moved, *self.turns))

    def _is_one_of(self, steered: set[str], value: ast.expr) -> bool:
        return bool(names_in(value) & steered) or self._reads_written(value)

    def _reads_written(self, value: ast.expr) -> bool:
        """True if an expression reads memory that a kernel writes."""
        for part in ast.walk(value):
            match part:
                case ast.Subscript(value=base) if not names_in(base) & self.fixed:
                    return True
                case ast.Call(func=ast.Name(id=name)) if "atomic" in name.lower():
                    return True
        return False

    def _reached(self, begin: set[str], is_begun: Callable[[ast.expr], bool]) -> set[str]:
        """The names whose values come from some names, or from expressions of a kind."""
        found = set(begin)
        while True:
            more = {
                name
                for name, values in self.given.items()
                if name not in found and any(is_begun(one) or names_in(one) & found for one in values)
            }
            if not more:
                return found
            found |= more
