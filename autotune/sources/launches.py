"""How a host's code launches kernels: grid, block, template arguments and arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autotune.sources.whole_numbers import number_of


@dataclass(frozen=True)
class Launch:
    """The launch of a kernel."""

    kernel: str
    template: tuple[str, ...]  # a default for what the launching function's own template takes
    grid: tuple[ast.expr, ...]  # three extents
    block: tuple[ast.expr, ...]  # three extents
    shared_bytes: ast.expr | None  # of dynamic shared memory
    arguments: tuple[ast.expr, ...]
    variables: Mapping[str, ast.expr]  # of the host as last set, without those changed in place


def launches(
    body: Sequence[ast.stmt], defaults: Mapping[str, str], given: Mapping[str, ast.expr]
) -> Iterator[Launch]:
    """The launches in the body of a function, whose template has defaults, and whose arguments are `given`.

    What is set where a condition does not hold counts for nothing.
    """
    variables = {**given}
    for statement, is_reached in _in_order(body, variables):
        match statement:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Name(id="launch"),
                    args=[ast.Call() as call, ast.Tuple(elts=[grid, block, *more]), ast.Tuple(elts=template)],
                )
            ):
                known = {**variables}
                texts = [str(one.value) for one in template if isinstance(one, ast.Constant)]
                yield Launch(
                    call.func.id if isinstance(call.func, ast.Name) else "",
                    tuple(text if text in known else defaults.get(text, text) for text in texts),
                    _extents(grid, variables),
                    _extents(block, variables),
                    more[0] if more else None,
                    tuple(call.args),
                    known,
                )
            case _ if not is_reached:
                continue
            case ast.AnnAssign(ast.Name(name), _, ast.expr() as value) | ast.Assign([ast.Name(name)], value):
                variables[name] = value
            case ast.AugAssign(target=ast.Name(id=name)):
                variables.pop(name, None)
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


def _in_order(
    body: Iterable[ast.stmt], variables: Mapping[str, ast.expr], *, is_reached: bool = True
) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements of a body and those in them, and whether the variables so far let them be reached."""
    for statement in body:
        yield statement, is_reached
        holds = number_of(statement.test, variables) if isinstance(statement, ast.If) else None
        for inside, counts in (("body", holds != 0), ("orelse", not holds)):
            yield from _in_order(getattr(statement, inside, ()), variables, is_reached=is_reached and counts)
