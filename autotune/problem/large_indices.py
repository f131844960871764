"""Finds indices that 32 bits cannot hold at sizes for which memory has no room.

A kernel runs on indices alone at such a size: once as it counts, and once with 64 bits wherever it counts
with 32. An array that threads then reach at other places has an index that overflows.
"""

from __future__ import annotations

from collections.abc import Iterator

from autotune.core.records import Sizes
from autotune.core.text import table_sizes
from autotune.problem.covering import Domain
from autotune.problem.index_runs import IndexRuns
from autotune.problem.loops import Make
from autotune.problem.problem_instance import ProblemInstance

_LARGE = 2**32  # elements
_SPARE = 1.1


def overflowing(runs: IndexRuns, timed: ProblemInstance, domain: Domain, make: Make) -> str | None:
    """An array of which an index overflows where arrays have more than 2^32 elements, with sizes, as text.

    Args:
        runs: The kernels of the configuration.
        timed: The problem of the size to tune for.
        domain: The domain of the space's sizes.
        make: Makes the problem of sizes; None where the arguments do not hold them.

    Returns:
        An array and sizes; empty if there is no such array or size, and None if it is not known.
    """
    made = (make(domain.declared(sizes)) for sizes in _large(timed))
    large = next((one for one in made if one is not None and _elements(one) > _LARGE), None)
    if large is None:
        return ""
    if _differing(runs, timed) != "":  # it counts beyond 32 bits on purpose, or is not understood
        return None
    array = _differing(runs, large)
    return array and f"an index of {array} overflows, for example at {table_sizes(large.definition.sizes)}"


def _elements(problem: ProblemInstance) -> int:
    """The elements of the largest array."""
    return max((array.count for array in problem.arrays), default=0)


def _large(timed: ProblemInstance) -> Iterator[Sizes]:
    """Sizes of arrays with more elements: all grow, or one."""
    sizes, times = timed.definition.sizes, _SPARE * _LARGE / max(1, _elements(timed))
    yield {name: round(size * times ** (1 / len(sizes))) + 1 for name, size in sizes.items()}
    for name, size in sizes.items():
        yield {**sizes, name: round(size * times)}


def _differing(runs: IndexRuns, problem: ProblemInstance) -> str | None:
    """The first array that is reached elsewhere with wide indices; empty without, None if not known."""
    for one, wide in zip(runs.of(problem), runs.of(problem, is_wide=True), strict=True):
        for (name, found, _), (other, wanted, _) in zip(one.reached, wide.reached, strict=False):
            if name == other and found != wanted:
                return name
        is_known = all(known for *_, known in wide.reached)
        if not (one.is_whole and is_known and len(one.reached) == len(wide.reached)):
            return None
    return ""
