"""Choose the sizes of a first space: the host's, or others, whose arrays fit and whose launch is short."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from math import prod

from autotune.core.expressions import integer, parse
from autotune.core.records import Value
from autotune.errors import ExpressionError
from autotune.scaffold.guessed_arguments import GuessedArgument
from autotune.scaffold.guessed_launch import GuessedLaunch
from autotune.scaffold.roles import Role
from autotune.sources.facts import names_in
from autotune.sources.type_layouts import assumed_bytes
from autotune.sources.whole_numbers import number_of

_MAX_BYTES = (1 << 31, 1 << 28)  # of all arrays: on a GPU, on a CPU
_MAX_STEPS = (200_000_000_000, 200_000_000)  # of all threads together: some tenths of a second


def default_sizes(
    launch: GuessedLaunch, arguments: Sequence[GuessedArgument], extents: Sequence[int]
) -> Mapping[str, tuple[int, int]]:
    """The extents of each size on a GPU and on a CPU where all arrays fit; `extents` are the usual ones."""
    usual_gpu, usual_cpu = (dict.fromkeys(launch.sizes, extent) for extent in extents)
    gpu = _fitting(usual_gpu | _of_host(launch), launch, arguments, 0)
    cpu = _fitting(usual_cpu, launch, arguments, 1)
    return {name: (gpu[name], cpu[name]) for name in launch.sizes}


def fitting_checks(
    launch: GuessedLaunch, arguments: Sequence[GuessedArgument], checks: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], ...]:
    """The extents of each check, smaller where the arrays would not fit."""
    given = (dict(zip(launch.sizes, check, strict=True)) for check in checks)
    return tuple(dict.fromkeys((*_fitting(sizes, launch, arguments, 1).values(),) for sizes in given))


def _fitting(
    sizes: Mapping[str, int], launch: GuessedLaunch, arguments: Sequence[GuessedArgument], kind: int
) -> Mapping[str, int]:
    """Sizes, halved until the arrays fit."""
    while max(sizes.values()) > 1 and not _fits(sizes, launch, arguments, kind):
        sizes = {name: max(1, size // 2) for name, size in sizes.items()}
    return sizes


def _of_host(launch: GuessedLaunch) -> dict[str, int]:
    """The sizes that the host has as numbers, or as variables that it sets to one."""
    kernel = launch.kernel
    if kernel.launch is None:
        return {}
    host = launch.source.host
    known: Mapping[str, ast.expr] = {**host.constants, **kernel.launch.variables}
    passed = zip(kernel.passed, kernel.launch.arguments, strict=False)
    numbers = {name: number_of(value, known) for name, value in passed}
    if launch.host:
        numbers |= {name: launch.host.default(name) for name in launch.host.sizes}
    return {
        name: number for name, number in numbers.items() if name in launch.sizes and number and number > 0
    }


def _fits(
    sizes: Mapping[str, int], launch: GuessedLaunch, arguments: Sequence[GuessedArgument], kind: int
) -> bool:
    """True if arrays of these sizes fit, and their elements are not visited too often."""
    values: dict[str, Value] = {**launch.default, **sizes}
    arrays = [item for item in arguments if item.role not in (None, Role.LOCAL)]
    try:
        counts = [prod(integer(parse(extent), values) for extent in item.shape) for item in arrays]
    except ExpressionError:
        return True
    size_bytes = sum(
        count * assumed_bytes(item.argument.dtype) for count, item in zip(counts, arrays, strict=True)
    )
    return size_bytes <= _MAX_BYTES[kind] and _steps(sizes, launch) <= _MAX_STEPS[kind]


def _steps(sizes: Mapping[str, int], launch: GuessedLaunch) -> int:
    """How many accesses to the arrays there are about: threads, times the turns of the loops around them.

    Loops without an access count on their own.
    """
    threads = prod(sizes[name] for text in launch.grid for name in names_in(ast.parse(text)) if name in sizes)
    loops = {id(loop): loop for loop in launch.facts.loops}
    around = [
        [loops[id(guard)] for guard in use.guards if id(guard) in loops] for use in launch.facts.accesses
    ]
    turns = []
    for nest in (*around, *([loop] for loop in loops.values())):
        bounds = [bound for loop in nest if isinstance(loop, ast.Compare) for bound in loop.comparators]
        named = [name for bound in bounds for name in _counts(bound, launch) & {"gridDim", *sizes}]
        counts = [threads if name == "gridDim" else sizes[name] for name in named]
        turns.append(prod(counts or (number_of(bound, launch.constants) or 1 for bound in bounds)))
    return threads * max(turns, default=1)


def _counts(bound: ast.expr, launch: GuessedLaunch) -> set[str]:
    """The names that a bound of a loop grows with, also by way of variables, unless another cuts it off."""
    found = names_in(bound)
    left: list[ast.AST] = [launch.facts.written_out(bound)]
    while left:
        node = left.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif not isinstance(node, ast.Call | ast.IfExp | ast.Subscript):
            left += ast.iter_child_nodes(node)
    return found
