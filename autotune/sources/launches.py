"""How a host's code launches kernels: grid, block, template arguments and arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autotune.sources.facts import Functions, inlined
from autotune.sources.whole_numbers import number_of

RUNTIME = ("cuda", "hip", "cu")  # how names of the runtime's functions begin


@dataclass(frozen=True)
class HostLaunch:
    """The launch of a kernel."""

    kernel: str
    template: tuple[str, ...]  # a default for what the launching function's own template takes
    grid: tuple[ast.expr, ...]  # three extents
    block: tuple[ast.expr, ...]  # three extents
    shared_bytes: ast.expr | None  # of dynamic shared memory
    arguments: tuple[ast.expr, ...]
    variables: Mapping[str, ast.expr]  # of the host as last set, without those changed in place


def launches(
    body: Sequence[ast.stmt],
    defaults: Mapping[str, str],
    given: Mapping[str, ast.expr],
    functions: Functions,
) -> Iterator[HostLaunch]:
    """The launches in the body of a function, whose template has defaults, and whose arguments are `given`.

    What is set where a condition does not hold counts for nothing. What the runtime sets, such as the number
    of multiprocessors, stands for the call that sets it. `functions` are the host's.
    """
    variables = {**given}
    for statement, is_reached in _in_order(body, variables):
        calls = [*_calls(statement)]
        for call in calls:
            match call:
                case ast.Call(
                    ast.Name("launch"),
                    [ast.Call(kernel, arguments), ast.Tuple([grid, block, *more]), ast.Tuple(template)],
                ):
                    known = {**variables}
                    texts = [str(one.value) for one in template if isinstance(one, ast.Constant)]
                    yield HostLaunch(
                        _kernel_name(kernel, variables),
                        tuple(text if text in known else defaults.get(text, text) for text in texts),
                        _extents(grid, variables, functions),
                        _extents(block, variables, functions),
                        more[0] if more else None,
                        tuple(arguments),
                        known,
                    )
        if not is_reached:
            continue
        for call in calls:
            if isinstance(call.func, ast.Name) and call.func.id.startswith(RUNTIME):
                variables |= dict.fromkeys(_addressed(call), call)
        match statement:
            case ast.AnnAssign(ast.Name(name), _, ast.expr() as value) | ast.Assign([ast.Name(name)], value):
                variables[name] = value
            case ast.AugAssign(target=ast.Name(id=name)):
                variables.pop(name, None)
            case ast.Assign([ast.Attribute(ast.Name(name), "x" | "y" | "z" as axis)], value):
                extents = [*_extents(ast.Name(name), variables, functions)]
                extents["xyz".index(axis)] = value
                variables[name] = ast.Call(ast.Name("dim3"), extents, [])
            case ast.Assign([ast.Attribute() as member], value):
                variables[ast.unparse(member)] = value


def functions_of(variables: Mapping[str, ast.expr]) -> Functions:
    """The functions that variables stand for."""
    return {
        name: ([one.arg for one in value.args.args], [ast.Return(value.body)])
        for name, value in variables.items()
        if isinstance(value, ast.Lambda)
    }


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls in a statement, without those in the statements that it has."""
    for _, value in ast.iter_fields(statement):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.expr):
                yield from (one for one in ast.walk(part) if isinstance(one, ast.Call))


def _addressed(call: ast.Call) -> Iterator[str]:
    """The variables whose addresses a call is given."""
    for one in call.args:
        match one:
            case ast.Call(ast.Name("address_of"), [ast.Name(name)]):
                yield name


def _kernel_name(kernel: ast.expr, variables: Mapping[str, ast.expr]) -> str:
    """The name of a kernel, which a variable may stand for."""
    value = variables.get(kernel.id, kernel) if isinstance(kernel, ast.Name) else kernel
    return value.id if isinstance(value, ast.Name) else ""


def _extents(
    value: ast.expr, variables: Mapping[str, ast.expr], functions: Functions
) -> tuple[ast.expr, ...]:
    """The three extents of a `dim3` or of a number."""
    one = ast.Constant(value=1)
    meaning, known = variables.get(ast.unparse(value)), {**functions, **functions_of(variables)}
    for candidate in (value, meaning):
        match inlined(candidate, known) if candidate else None:
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
