"""Take one thing out of kernels, and keep the rest of their work: atomics, barriers or checks of bounds.

The result is wrong: only the time is asked for. Without atomics or barriers, memory has other values. So they
are taken out only where no value that a kernel writes to memory decides an index or the end of a loop. An
array that is no input counts as written: an earlier launch may have done that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest

from tree_sitter import Node

from autotune.errors import InputError
from autotune.sources import tree
from autotune.sources.edits import TextEdit, edited, instead, is_statement, reached
from autotune.sources.facts import BARRIERS, WARP_BARRIERS, names_in
from autotune.sources.kernel_source import Function, KernelSource
from autotune.sources.statements import ADDRESS, LAUNCH, POINTER_CAST, Declared, Loop, Statements

ATOMICS, BARRIER_CALLS, CHECKS = "atomics", "barriers", "checks of bounds"

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
_Find = Callable[[KernelSource, Function], Iterator[TextEdit | None]]
_LEAVES = ("return_statement", "continue_statement", "break_statement")


def without(kind: str, source: KernelSource, inputs: Mapping[str, Collection[int]]) -> str | None:
    """The text of a source without atomics, barriers or checks of bounds; None if it has none.

    A check is left out whether or not it holds for all threads: run the text on indices before it runs.

    Args:
        kind: What to take out.
        source: The source, read for the macros of a configuration.
        inputs: For each kernel that is launched, the places of parameters to which nothing is ever written.

    Raises:
        InputError: It is there, and cannot be taken out; the message says why.
    """
    functions = reached(source, inputs)
    flow = _Flow.of(functions, inputs)
    checks = partial(_checks, flow.sizes())
    find: Mapping[str, _Find] = {ATOMICS: _atomics, BARRIER_CALLS: _barriers, CHECKS: checks}
    found = [edit for function in functions for edit in find[kind](source, function)]
    if not found:
        return None
    if None in found:
        raise InputError(f"not all {kind} can be taken out: their results are used, or a macro has them")
    if flow.has_launches:
        raise InputError(f"{kind} are not taken out of kernels that launch kernels")
    if kind != CHECKS and flow.is_steered():
        raise InputError(
            f"without {kind}, memory has other values, and these decide an index or when a loop ends"
        )
    text = edited(source.original, dict.fromkeys(edit for edit in found if edit is not None))
    return _HEAD + text if kind == ATOMICS else text


def _barriers(source: KernelSource, function: Function) -> Iterator[TextEdit | None]:
    for node in tree.descendants(function.node):
        if node.type == "call_expression" and _called(source, node) in (*BARRIERS, *WARP_BARRIERS):
            yield instead(source, node, "(void)0") if is_statement(node) else None


def _atomics(source: KernelSource, function: Function) -> Iterator[TextEdit | None]:
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


def _checks(sizes: Collection[str], source: KernelSource, function: Function) -> Iterator[TextEdit | None]:
    """Comparisons with what comes from the sizes of a problem, in branches and not in loops."""
    for node in tree.descendants(function.node):
        if node.type in ("if_statement", "conditional_expression"):
            condition = tree.field(node, "condition")
            leaves = _leaves(tree.field(node, "consequence"))
            for part in _parts(tree.field(condition, "value") or condition):
                sides = (source.tree.of(tree.field(part, side)) for side in ("left", "right"))
                is_size = any(_local(function, side) in sizes for side in sides)
                is_ordered = source.tree.of(tree.field(part, "operator")) in _ORDERED
                edit = instead(source, part, "0" if leaves else "1")
                if is_ordered and is_size and edit is not None:
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
        inside = [child for child in body.named_children if child.type != "comment"]
        body = inside[-1] if inside else None
    return body is not None and body.type in _LEAVES


@dataclass
class _Flow:
    """Where names get their values from in several functions, whose names stand before those of their own."""

    functions: Mapping[str, Function]
    given: dict[str, list[ast.expr]] = field(default_factory=dict)  # `*p` is what p points to
    passed: set[str] = field(default_factory=set)  # numbers of a launch
    shared: set[str] = field(default_factory=set)  # by a block, or set by an unknown function
    pointers: set[str] = field(default_factory=set)  # and arrays
    fixed: set[str] = field(default_factory=set)  # pointers to memory that nothing writes
    turns: list[ast.expr] = field(default_factory=list)  # conditions of loops
    indices: list[ast.expr] = field(default_factory=list)  # of accesses
    has_launches: bool = False  # a kernel launches another one

    @classmethod
    def of(cls, functions: Sequence[Function], inputs: Mapping[str, Collection[int]]) -> _Flow:
        """The flow in some functions."""
        flow = cls({one.name: one for one in functions})
        for function in functions:
            for place, one in enumerate(function.parameters):
                name = _local(function, one.name)
                if one.pointers:
                    flow.pointers.add(name)
                    if not function.is_kernel or place in inputs.get(function.name, ()):
                        flow.fixed.add(name)
                elif function.is_kernel:
                    flow.passed.add(name)
            for part in _with_local_names(function):
                flow._note(part, function)
        while True:  # a pointer made from another one is fixed if that one is
            lost = {
                name
                for name in flow.fixed
                if any(names_in(one) & flow.pointers - flow.fixed for one in flow.given.get(name, ()))
            }
            if not lost:
                return flow
            flow.fixed -= lost

    def _note(self, part: ast.AST, function: Function) -> None:
        """Note what a part does."""
        match part:
            case ast.AnnAssign(ast.Name(name), ast.Constant(Declared() as own), value):
                self._set(name, value)
                self.pointers |= {name} if own.is_pointer or own.extents else set()
                self.fixed |= {name} if own.is_pointer and not own.is_shared else set()
                self.shared |= {name} if own.is_shared and not own.extents else set()
            case ast.Assign(targets=[target], value=value) | ast.AugAssign(target=target, value=value):
                self._set(_set_by(target), value)
            case ast.Return(value=value):
                self._set(function.name, value)
            case Loop(test=test):
                self.turns.append(test)
                branches = [one for one in ast.walk(part) if isinstance(one, ast.If)]
                self.turns += (branch.test for branch in branches if _has_exit(branch))
            case ast.Subscript(slice=index):
                self.indices.append(index)
            case ast.Call(func=ast.Name(id=name), args=given):
                self.has_launches |= name == LAUNCH
                called = self.functions.get(name)
                parameters = called.parameters if called else ()
                for one, parameter in zip_longest(given, parameters[: len(given)]):
                    to = _local(called, parameter.name) if called and parameter else ""
                    self._pass(one, to, is_reference=parameter is not None and parameter.is_reference)

    def _pass(self, given: ast.expr, to: str, *, is_reference: bool) -> None:
        """Note what is passed to a parameter, or to an unknown function, and what it may set in turn."""
        match given:
            case ast.Call(func=ast.Name(id="address_of"), args=[ast.Name(id=own)]):
                self._set(own, ast.Name(f"*{to}"))
                self.shared |= set() if to else {own}
            case ast.Name(id=own) if is_reference:
                self._set(own, ast.Name(to))
        if to:
            self._set(to, given)

    def _set(self, name: str, value: ast.expr | None) -> None:
        if value is not None:
            self.given.setdefault(name, []).append(value)

    def sizes(self) -> frozenset[str]:
        """The names whose values come from numbers that a launch passes."""
        return frozenset(self._reached(self.passed, lambda value: False))

    def is_steered(self) -> bool:
        """True if values that threads write to memory may decide an index, a pointer or the end of a loop."""
        steered = self._reached(self.shared, self._reads_written)
        moved = (value for name in self.pointers for value in self.given.get(name, ()))
        return any(
            names_in(value) & steered or self._reads_written(value)
            for value in (*self.indices, *moved, *self.turns)
        )

    def _reads_written(self, value: ast.expr) -> bool:
        """True if an expression reads memory that a kernel writes."""
        for part in ast.walk(value):
            match part:
                case ast.Subscript(value=base):
                    read = names_in(base) & self.pointers
                    if not read or not read <= self.fixed:
                        return True
                case ast.Call(func=ast.Name(id=name), args=given) if name not in self.functions:
                    is_moved = name in (ADDRESS, POINTER_CAST)
                    if not is_moved and any(names_in(one) & self.pointers - self.fixed for one in given):
                        return True
        return False

    def _reached(self, begin: set[str], is_begun: Callable[[ast.expr], bool]) -> set[str]:
        """The names whose values come from some names, or from expressions of a kind."""
        reached = set(begin)
        while True:
            more = {
                name
                for name, values in self.given.items()
                if name not in reached
                and any(is_begun(value) or names_in(value) & reached for value in values)
            }
            if not more:
                return reached
            reached |= more


def _set_by(target: ast.expr) -> str:
    """The name that an assignment changes: of a structure it is the whole, of `*p` or `p[i]` it is `*p`."""
    while isinstance(target, ast.Attribute):
        target = target.value
    match target:
        case ast.Name(id=name):
            return name
        case ast.Subscript(value=ast.Name(id=name) | ast.BinOp(left=ast.Name(id=name))):
            return f"*{name}"
    return ""


def _has_exit(branch: ast.If) -> bool:
    return any(isinstance(part, ast.Break | ast.Return) for part in ast.walk(branch))


def _local(function: Function, name: str) -> str:
    return f"{function.name}.{name}"


def _with_local_names(function: Function) -> Iterator[ast.AST]:
    """All parts of a function's statements, with its name before those of its parameters and variables."""
    body, _ = function.read_by(Statements)  # anew, for its names change
    parts = [part for statement in body for part in ast.walk(statement)]
    own = {parameter.name for parameter in function.parameters} | function.declared.keys()
    for part in parts:
        if isinstance(part, ast.Name) and part.id in own:
            part.id = _local(function, part.id)
    yield from parts
