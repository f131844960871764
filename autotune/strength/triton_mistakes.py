"""Find mistakes to plant in a Triton kernel: where its syntax tree has what each kind changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import accumulate

from autotune.core.syntax import parse_module
from autotune.sources.edits import TextEdit
from autotune.strength.mistakes import (
    ACCUMULATION,
    BARRIER,
    GUARD,
    IDENTITY,
    NARROW,
    NEIGHBOUR,
    OFF_BY_ONE,
    PADDING,
    STAGE,
    SWAPPED,
    TAIL,
    TICKET,
    WRONG_BOUNDS,
    Mistake,
    other_value,
)

_OPERATORS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_TRUE = "(({0}) == ({0}))"  # of the same shape
_HALF = "{0}; {1} = {1}.to(tl.float16).to(tl.float32)"


def mistakes_in_triton(text: str, entries: frozenset[str]) -> list[Mistake]:
    """The mistakes that can be planted in the kernels of these names, and in the functions that they call."""
    tree = parse_module(text)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    left, reached = [*entries], set()
    mistakes: dict[Mistake, None] = {}
    while left:
        name = left.pop()
        if name not in functions or name in reached:
            continue
        reached.add(name)
        left += _names(functions[name])
        reading = _Reading(text, functions[name])
        for statement in functions[name].body:
            for node in ast.walk(statement):
                mistakes |= dict.fromkeys(reading.of(node))
    return list(mistakes)


class _Reading:
    """Finds the mistakes of one function."""

    def __init__(self, text: str, function: ast.FunctionDef) -> None:
        self._text = text
        self._starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        changed = (ast.unparse(node.target) for node in ast.walk(function) if isinstance(node, ast.AugAssign))
        again = (node for node in ast.walk(function) if isinstance(node, ast.Assign))
        self._summed = {*changed, *(name for node in again for name in _own_names(node))}
        calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and node.args]
        self._counters = {ast.unparse(call.args[0]) for call in calls if _called(call).startswith("atomic_")}
        self._addresses = set().union(
            *(_names(call.args[0]) for call in calls if _called(call) in ("load", "store"))
        )
        self._axes = {
            ast.unparse(node.args[0])
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and _called(node) == "program_id" and node.args
        }

    def of(self, node: ast.AST) -> Iterator[Mistake]:
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _OPERATORS:
                for new in WRONG_BOUNDS[_OPERATORS[type(operator)]]:
                    yield Mistake(OFF_BY_ONE, (TextEdit(self._end(left), self._begin(right), f" {new} "),))
            case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
                for part in (left, right):
                    yield self._instead(GUARD, part, _TRUE)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if name in _own_names(node):
                    yield self._instead(ACCUMULATION, node, _HALF, name)
                elif name in self._summed:
                    yield from self._in_initial(value)
            case ast.AugAssign(target=ast.Name(id=name)) if name in self._addresses:
                yield self._instead(STAGE, node, "pass")
                yield self._instead(STAGE, node.value, "({0}) * 2")
            case ast.AugAssign(target=ast.Name(id=name)):
                yield self._instead(ACCUMULATION, node, _HALF, name)
            case ast.Expr(value=ast.Call() as call) if _called(call) == "debug_barrier":
                yield self._instead(BARRIER, node, "pass")
            case ast.Expr(value=ast.Call(args=[counter, ast.Constant(value=0), *_]) as call) if (
                _called(call) in ("store", "atomic_xchg") and ast.unparse(counter) in self._counters
            ):
                yield self._instead(TICKET, node, "pass")
            case ast.Call():
                yield from self._in_call(node)

    def _in_initial(self, value: ast.expr) -> Iterator[Mistake]:
        if isinstance(value, ast.Call) and _called(value) == "full" and len(value.args) > 1:
            yield self._instead(IDENTITY, value.args[1], other_value(self._old(value.args[1])))
        elif isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and _called(value) == "zeros"):
            yield self._instead(IDENTITY, value, "({0}) + 1")

    def _in_index(self, index: ast.expr) -> Iterator[Mistake]:
        for node in ast.walk(index):
            match node:
                case ast.BinOp(left=ast.BinOp(left=row, op=ast.Mult()), op=ast.Add(), right=column):
                    names = self._old(row), self._old(column)
                    if names[0] != names[1]:
                        yield Mistake(SWAPPED, (self._edit(row, names[1]), self._edit(column, names[0])))

    def _in_call(self, call: ast.Call) -> Iterator[Mistake]:
        name = _called(call)
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if name in ("load", "store") and (mask := given.get("mask")):
            yield self._instead(GUARD, mask, _TRUE)
        if name in ("load", "store") and call.args:
            yield from self._in_index(call.args[0])
        if name == "load" and call.args:
            yield self._instead(NEIGHBOUR, call.args[0], "({0}) + 1")
        padding = given.get("other") if name == "load" else None
        if name == "where" and len(call.args) == 3 and not isinstance(call.args[2], ast.Name):
            padding = call.args[2]
        if padding is not None:
            yield self._instead(PADDING, padding, other_value(self._old(padding)))
        if name == "cdiv" and len(call.args) == 2:
            yield self._instead(TAIL, call, f"(({self._old(call.args[0])}) // ({self._old(call.args[1])}))")
        if name == "range" and len(call.args) == 3:
            step = self._old(call.args[2])
            yield self._instead(TAIL, call.args[1], f"({{0}}) // ({step}) * ({step})")
            yield self._instead(STAGE, call.args[0], f"({{0}}) + ({step})")
        if name == "program_id" and len(self._axes) > 1 and call.args:
            old = self._old(call.args[0])
            yield self._instead(SWAPPED, call.args[0], min(self._axes - {old}))
        if name == "to" and call.args and self._old(call.args[0]).endswith("int64"):
            yield self._instead(NARROW, call.args[0], "tl.int16")

    def _instead(self, kind: str, node: ast.expr | ast.stmt, new: str, name: str = "") -> Mistake:
        """A mistake that replaces a node; `{0}` in the new text is the old one."""
        return Mistake(kind, (self._edit(node, new.format(self._old(node), name)),))

    def _edit(self, node: ast.expr | ast.stmt, new: str) -> TextEdit:
        return TextEdit(self._begin(node), self._end(node), new)

    def _old(self, node: ast.expr | ast.stmt) -> str:
        return self._text[self._begin(node) : self._end(node)]

    def _begin(self, node: ast.expr | ast.stmt) -> int:
        return self._place(node.lineno, node.col_offset)

    def _end(self, node: ast.expr | ast.stmt) -> int:
        return self._place(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)

    def _place(self, line: int, column: int) -> int:
        """Where a byte of a line stands in the text."""
        start = self._starts[line - 1]
        return start + len(self._text[start : start + column].encode()[:column].decode(errors="ignore"))


def _called(call: ast.Call) -> str:
    """The last name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _own_names(node: ast.Assign) -> set[str]:
    """The variables that an assignment sets to a value that depends on them."""
    return _names(node.value) & {target.id for target in node.targets if isinstance(target, ast.Name)}
