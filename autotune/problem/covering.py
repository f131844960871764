"""Chooses the smallest problems at which a configuration does all that it does at others, for slow checks.

Blocks and loop trips are told apart by how the sizes divide: by a configuration's numbers, such as the size
of a tile, by the extents of its blocks, and by products of two of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from autotune.core.records import Config
from autotune.problem.problem_instance import ProblemInstance

_MANY = 3  # from so many blocks on, a grid has a first, a last and others between


def covering(problems: Sequence[ProblemInstance], config: Config) -> tuple[ProblemInstance, ...]:
    """The problems without those, the largest first, whose kinds of blocks and trips others have, too."""
    numbers = {value for value in config.values() if type(value) is int and value > 1}
    extents = {
        extent for problem in problems for step in problem.launches for extent in step.block if extent > 1
    }
    factors = sorted(numbers | extents)
    divisors = sorted({one * other for one, other in product(factors, [1, *factors])})
    kinds = {place: _kinds(problem, divisors) for place, problem in enumerate(problems)}
    for place in sorted(kinds, key=lambda place: threads(problems[place]), reverse=True):
        others = set().union(*(found for other, found in kinds.items() if other != place))
        if kinds[place] <= others:
            del kinds[place]
    return tuple(problems[place] for place in kinds)


def threads(problem: ProblemInstance) -> int:
    """The threads of all launches of a problem."""
    return sum(launch.threads for launch in problem.launches)


def _kinds(problem: ProblemInstance, divisors: Sequence[int]) -> set[tuple[object, ...]]:
    """What a configuration does at a problem: its launches, and how all sizes divide by each divisor."""
    launches = tuple(
        (step.entry, tuple(min(extent, _MANY) for extent in step.grid), step.block)
        for step in problem.launches
    )
    sizes = problem.definition.sizes.values()
    return {("launches", launches)} | {
        (divisor, *((min(size // divisor, 2), size % divisor == 0) for size in sizes)) for divisor in divisors
    }
