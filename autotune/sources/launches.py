"""How a host's code launches kernels: grid, block, template arguments and arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """The launch of a kernel."""

    kernel: str
    template: tuple[str, ...]  # a default for what the launching function's own template takes
    grid: tuple[ast.expr, ...]  # three extents
    block: tuple[ast.expr, ...]  # three extents
    arguments: tuple[ast.expr, ...]
    variables: Mapping[str, ast.expr]  # of the host as last set, without those changed in place


def launches(body: Sequence[ast.stmt], defaults: Mapping[str, str]) -> Iterator[Launch]:
    """The launches in the body of a function, whose template has defaults."""
    variables: dict[str, ast.expr] = {}
    changed: set[str] = set()
    for statement in _in_order(body):
        match statement:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Name(id="launch"),
                    args=[ast.Call() as call, ast.Tuple(elts=[grid, block, *_]), ast.Tuple(elts=template)],
                )
            ):
                known = {name: value for name, value in variables.items() if name not in changed}
                texts = [str(one.value) for one in template if isinstance(one, ast.Constant)]
                yield Launch(
                    call.func.id if isinstance(call.func, ast.Name) else "",
                    tuple(one if one in known else defaults.get(one, one) for one in texts),
                    _extents(grid, variables),
                    _extents(block, variables),
                    tuple(call.args),
                    known,
                )
            case ast.AnnAssign(ast.Name(name), _, ast.expr() as value) | ast.Assign([ast.Name(name)], value):
                variables[name] = value
            case ast.AugAssign(target=ast.Name(id=name)):
                changed.add(name)
            case ast.Assign([ast.Attribute(ast.Name(name), "x" | "y" | "z" as axis)], value):
                extents = [*_extents(ast.Name(name), variables)]
                extents["xyz".index(axis)] = value
                variables[name] = ast.Call(ast.Name("dim3"), extents, [])


def _extents(value: ast.expr, variables: Mapping[str, ast.expr]) -> tuple[ast.expr, ...]:
    """The three extents of a `dim3` or of a number."""
    one = ast.Constant(value=1)
    meaning = variables.get(value.id) if isinstance(value, ast.Name) else None
    for candidate in (value, meaning):
        match candidate:
            case ast.List(given) | ast.Call(ast.Name("dim3"), given):
                return (*given, one, one, one)[:3]
    return (value, one, one)


def _in_order(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and those in them."""
    for statement in body:
        yield statement
        for inside in ("body", "orelse"):
            yield from _in_order(getattr(statement, inside, ()))
