"""Finds indices that 32 bits cannot hold at sizes for which memory has no room.

A kernel runs on indices alone at such a size: once as it counts, and once with 64 bits wherever it counts
with 32. An array that is then reached at other places has an index that overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from autotune.core.records import Sizes
from autotune.core.text import table_sizes
from autotune.problem.covering import Domain
from autotune.problem.index_runs import IndexRuns
from autotune.problem.workload import Make, Workload

_LARGE, _SMALL = (32, 31), 24  # powers of two, in elements; numbers of 32 bits may hold the second only
_SPARE = 1.1

Overflow = Callable[[Workload], str | None]  # the array; empty without, None if it is not known


def overflowing(overflow: Overflow, timed: Workload, domain: Domain, make: Make) -> str | None:
    """An array of which an index overflows where arrays have more than 2^32 elements, or 2^31, as text.

    It says from how many elements on, and sizes. It is empty if there is no such array or size, and None if
    it is not known. `timed` is the problem of the size to tune for.
    """

    def at(power: int) -> Workload | None:
        made = (make(domain.declared(sizes)) for sizes in _grown(timed, 2**power))
        return next((grown for grown in made if grown is not None and _elements(grown) > 2**power), None)

    for power in _LARGE:
        large = at(power)
        if large is not None:
            break
    else:
        return ""
    if overflow(timed) != "":  # it counts beyond 32 bits on purpose, or is not understood
        return None
    if not (array := overflow(large)):
        return array
    while power > _SMALL and (smaller := at(power - 1)) is not None and overflow(smaller) == array:
        power, large = power - 1, smaller
    sizes = table_sizes(large.problem.sizes)
    return f"an index of {array} overflows beyond 2^{power} elements, for example at {sizes}"


def overflow_in(runs: IndexRuns) -> Overflow:
    """By running kernels on indices alone, with 32 and with 64 bits."""

    def differing(workload: Workload) -> str | None:
        for narrow, wide in zip(runs.runs_of(workload), runs.runs_of(workload, is_wide=True), strict=True):
            for (name, reached, _), (wide_name, wanted, _) in zip(narrow.reached, wide.reached, strict=False):
                if name == wide_name and reached != wanted:
                    return name
            is_known = all(known for *_, known in wide.reached)
            followed = {name for name, places, _ in wide.reached if places}
            is_known &= all(name in followed for name, *_ in wide.reached)  # not only where data decides
            if not (narrow.is_whole and is_known and len(narrow.reached) == len(wide.reached)):
                return None
        return ""

    return differing


def _elements(workload: Workload) -> int:
    return max((array.count for array in workload.arrays), default=0)


def _grown(timed: Workload, elements: int) -> Iterator[Sizes]:
    """Sizes of arrays with more elements: all grow, or one."""
    sizes, times = timed.problem.sizes, _SPARE * elements / max(1, _elements(timed))
    yield {name: round(size * times ** (1 / len(sizes))) + 1 for name, size in sizes.items()}
    for name, size in sizes.items():
        yield {**sizes, name: round(size * times)}
