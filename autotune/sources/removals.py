"""Take one thing out of kernels, and keep the rest of their work: atomics, barriers or checks of bounds.

The result is wrong: only the time is asked for. Without atomics or barriers, memory has other values. So they
are taken out only where no value that a kernel writes to memory decides an index or the end of a loop.
"""

from __future__ import annotations

import ast
import copy
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
# Volatile, so that the compiler keeps each of them.
_HEAD = f"""#ifdef __OPENCL_VERSION__
#define {_STORE}(pointer, value) (*(volatile __typeof__(*(pointer)) *)(pointer) = (value))
#else
template <class T, class V> __device__ inline void {_STORE}(T *pointer, V value)
{{
    *(volatile T *)pointer = value;
}}
#endif
"""
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
    find = {ATOMICS: _atomics, BARRIER_CALLS: _barriers, CHECKS: _Checks(flow.sizes()).edits}[kind]
    found = [edit for function in functions for edit in find(source, function)]
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


def _barriers(source: KernelSource, function: Function) -> Iterator[Edit | None]:
    for node in tree.descendants(function.node):
        if node.type == "call_expression" and _called(source, node) in _ALL_BARRIERS:
            yield instead(source, node, "(void)0") if is_statement(node) else None


def _atomics(source: KernelSource, function: Function) -> Iterator[Edit | None]:
    """A store of the operand in the place of each atomic: as many accesses, of as many bytes."""
    for node in tree.descendants(function.node):
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

    def edits(self, source: KernelSource, function: Function) -> Iterator[Edit | None]:
        for node in tree.descendants(function.node):
            if node.type in ("if_statement", "conditional_expression"):
                condition = tree.field(node, "condition")
                leaves = _leaves(tree.field(node, "consequence"))
                for part in _parts(tree.field(condition, "value") or condition):
                    names = {
                        _local(function, source.tree.of(tree.field(part, side))) for side in ("left", "right")
                    }
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
    """Where the names of several functions get their values from; a local name has its function's before it.

    Attributes:
        given: The expressions that each name is set to, those of calls included.
        passed: The numbers that a launch passes.
        pointers: Names of pointers and arrays.
        fixed: Pointers to memory that no kernel writes.
        turns: The conditions of loops.
        indices: Those of accesses.
    """

    given: dict[str, list[ast.expr]] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    pointers: set[str] = field(default_factory=set)
    fixed: frozenset[str] = frozenset()
    turns: list[ast.expr] = field(default_factory=list)
    indices: list[ast.expr] = field(default_factory=list)

    @classmethod
    def of(cls, functions: list[Function]) -> _Flow:
        """The flow in some functions."""
        flow, own = cls(), {one.name: one for one in functions}
        written = set[str]()
        for function in functions:
            for one in function.parameters:
                name = _local(function, one.name)
                flow.pointers |= {name} if one.pointers else set()
                if function.is_kernel:
                    flow.passed |= set() if one.pointers else {name}
                    written |= {name} if one.pointers and not one.is_const else set()
            for part in _with_local_names(function):
                written |= flow._note(part, function, own)
        fixed = flow.pointers - written
        while True:  # a pointer made from another one is fixed if that one is
            lost = {
                name
                for name in fixed
                if any(names_in(one) & flow.pointers - fixed for one in flow.given.get(name, ()))
            }
            if not lost:
                break
            fixed -= lost
        flow.fixed = frozenset(fixed)
        return flow

    def _note(self, part: ast.AST, function: Function, own: dict[str, Function]) -> set[str]:
        """Note what a part does; gives the array that it declares, for kernels write those."""
        match part:
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=ast.Constant(value=declared), value=value
            ):
                self._set(name, value)
                if isinstance(declared, Declared) and (declared.is_pointer or declared.extents):
                    self.pointers.add(name)
                    return set() if declared.is_pointer else {name}
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
            case ast.Subscript(slice=index):
                self.indices.append(index)
            case ast.Call(func=ast.Name(id=name), args=given) if name in own:
                for parameter, one in zip(own[name].parameters, given, strict=False):
                    self._set(_local(own[name], parameter.name), one)
        return set()

    def _set(self, name: str, value: ast.expr | None) -> None:
        if value is not None:
            self.given.setdefault(name, []).append(value)

    def sizes(self) -> frozenset[str]:
        """The names whose values come from numbers that a launch passes."""
        return frozenset(self._reached(self.passed, lambda value: False))

    def is_steered(self) -> bool:
        """True if values that threads write to memory may decide an index, a pointer or the end of a loop."""
        steered = self._reached(set(), self._reads_written)
        moved = (value for name in self.pointers for value in self.given.get(name, ()))
        return any(self._is_one_of(steered, value) for value in (*self.indices, *moved, *self.turns))

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


def _local(function: Function, name: str) -> str:
    return f"{function.name}.{name}"


def _with_local_names(function: Function) -> Iterator[ast.AST]:
    """All parts of a function's statements, with its name before those of its parameters and variables."""
    body = [copy.deepcopy(statement) for statement in function.body]
    parts = [part for statement in body for part in ast.walk(statement)]
    own = {one.name for one in function.parameters}
    own |= {
        part.target.id
        for part in parts
        if isinstance(part, ast.AnnAssign | ast.For) and isinstance(part.target, ast.Name)
    }
    for part in parts:
        if isinstance(part, ast.Name) and part.id in own:
            part.id = _local(function, part.id)
    yield from parts
