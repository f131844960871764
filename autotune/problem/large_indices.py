"""Finds what fails, or behaves differently, at sizes that do not fit into memory.

A kernel's indices are computed at such a size: once as written, and once with 64 bits wherever it uses 32. If
the two reach an array at different places, its index overflows. If a condition on sizes alone differs from
its value at every verified size, it leads to code that nobody has verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from autotune.core.records import Sizes
from autotune.core.text import table_sizes
from autotune.problem.covering import Domain
from autotune.problem.index_runs import IndexRuns
from autotune.problem.workload import Make, Workload

LARGE = (32, 31)  # arrays of more than 2 to these powers have indices that 32 bits may not hold
_SMALL = 24  # a limit is looked for down to 2 to this power
_SPARE = 1.1

_Way = tuple[str, str, bool]  # the kernel, a condition, and whether it holds


class IndexLimit(NamedTuple):
    """The sizes, beyond those of the space, at which a configuration may go wrong."""

    reason: str  # where an index overflows or a condition changes; empty if neither does at any size
    is_known: bool = True  # False if only a run would tell
    changed: Workload | None = None  # a size at which a condition comes out as at none of the space


def unknown_beyond(power: int) -> IndexLimit:
    """Nothing is known of arrays of more elements than a power of two."""
    return IndexLimit(f"it is not known if indices overflow in arrays of more than 2^{power} elements", False)


def limit_of(
    runs: IndexRuns, verified: Sequence[Workload], timed: Workload, domain: Domain, make: Make
) -> IndexLimit:
    """What fails with arrays of more than 2^32 elements, or 2^31, and from how many elements on.

    `timed` is the problem of the size to tune for. There is no limit if no such size is valid.
    """

    def at(power: int) -> Workload | None:
        made = (make(domain.declared(sizes)) for sizes in _grown(timed, 2**power))
        return next((grown for grown in made if grown is not None and _elements(grown) > 2**power), None)

    def first(is_so: Callable[[Workload], bool], power: int, found: Workload) -> tuple[Workload, str]:
        """A workload beyond the smallest power from which on `is_so` holds, and the two in words."""
        while power > _SMALL and (smaller := at(power - 1)) is not None and is_so(smaller):
            power, found = power - 1, smaller
        return found, f"beyond 2^{power} elements, for example at {table_sizes(found.problem.sizes)}"

    for power in LARGE:
        large = at(power)
        if large is not None:
            break
    else:
        return IndexLimit("")
    # if it overflows at the size to tune for, it counts beyond 32 bits on purpose, or is not understood
    array = _overflowing(runs, large) if _overflowing(runs, timed) == "" else None
    if array is None:
        return unknown_beyond(min(LARGE))
    if array:
        _, where = first(lambda one: _overflowing(runs, one) == array, power, large)
        return IndexLimit(f"an index of {array} overflows {where}")
    seen = [_ways(runs, one) for one in (*verified, timed)]
    new = (_ways(runs, large) or set()).difference(*filter(None, seen))
    if not new or None in seen:
        return IndexLimit("")
    way = kernel, condition, holds = min(new)
    changed, where = first(lambda one: way in (_ways(runs, one) or ()), power, large)
    value = str(holds).lower()
    reason = f"`{condition}` in {kernel}, never {value} at sizes of the space, is {value} {where}"
    return IndexLimit(reason, is_known=False, changed=changed)


def _overflowing(runs: IndexRuns, workload: Workload) -> str | None:
    """An array that 32 and 64 bits reach at different places; empty if there is none, None if unknown."""
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


def _ways(runs: IndexRuns, workload: Workload) -> set[_Way] | None:
    """The values of the conditions that sizes alone decide; None if a launch did not come to its end."""
    each = runs.runs_of(workload)
    if not all(run.is_whole for run in each):
        return None
    return {(run.entry, *way) for run in each for way in run.ways}


def _elements(workload: Workload) -> int:
    return max((array.count for array in workload.arrays), default=0)


def _grown(timed: Workload, elements: int) -> Iterator[Sizes]:
    """Sizes of arrays with more elements: all grow, or one."""
    sizes, times = timed.problem.sizes, _SPARE * elements / max(1, _elements(timed))
    yield {name: round(size * times ** (1 / len(sizes))) + 1 for name, size in sizes.items()}
    for name, size in sizes.items():
        yield {**sizes, name: round(size * times)}
