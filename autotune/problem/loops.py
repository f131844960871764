"""Finds small sizes at which loops have a second iteration, as they have at the size to tune for.

A mistake between two iterations of a loop, such as a missing barrier, does not show at sizes at which the
loop ends after its first iteration. Loops whose iterations depend on data, and kernels that `index_runs` does
not understand, get no further sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from autotune.core.records import Sizes
from autotune.problem.covering import Domain, size_product, threads
from autotune.problem.index_runs import AGAIN, IndexRuns
from autotune.problem.workload import Make, Workload

_Loop = tuple[str, int]  # the kernel, and the loop's place in the source
_CLOSE = 1 / 64  # a size is found to within this share of the way to the size to tune for
_EXACT = 3  # leading bits of a size on the way; the others are 0 if they are in the size to tune for


class Loops:
    """The loops of one configuration's kernels."""

    def __init__(self, runs: IndexRuns) -> None:
        self._runs = runs

    def iterating_again(self, workloads: Iterable[Workload]) -> set[_Loop]:
        """The loops that surely have a second iteration in a thread of a block at a corner of a launch."""
        return {
            (run.entry, place)
            for workload in workloads
            for run in self._runs.runs_of(workload)
            for place, turns in run.turns.items()
            if turns >= AGAIN
        }

    def further(
        self,
        verified: Sequence[Workload],
        checked: Sequence[Workload],
        timed: Workload,
        make: Make,
    ) -> tuple[list[Workload], bool]:
        """Workloads for loops with a second iteration at the size to tune for, and at no checked size.

        They have as few threads as possible; False comes with them if there is none for some loop, or if a
        kernel is not understood, whose loops are not known.

        Args:
            verified: The workloads of the sizes to verify, at least one.
            checked: Those that are checked.
            timed: The workload of the size to tune for.
            make: Makes the workload of sizes.
        """
        lacking = self.iterating_again([timed]) - self.iterating_again(checked)
        base = min((one.problem.sizes for one in verified), key=size_product)
        chosen, is_whole = list[Workload](), all(run.is_whole for run in self._runs.runs_of(timed))
        while lacking:
            loop = min(lacking)
            ways = [self._smallest(loop, way) for way in _ways(base, timed, [*verified, timed], make)]
            best = min(filter(None, ways), key=threads, default=None)
            if best is None:
                is_whole = False
            else:
                chosen.append(best)
            lacking -= {loop, *(self.iterating_again([best]) if best else ())}
        return chosen, is_whole

    def _smallest(self, loop: _Loop, at: Callable[[float], Workload | None]) -> Workload | None:
        """The workload closest to the base on a way of growing sizes at which a loop iterates again."""
        low, high = 0.0, 1.0
        best = at(high)
        if best is None or loop not in self.iterating_again([best]):
            return None
        while high - low > _CLOSE:
            middle = (low + high) / 2
            workload = at(middle)
            if workload is not None and loop in self.iterating_again([workload]):
                best, high = workload, middle
            else:
                low = middle
        return best


def _ways(
    base: Sizes, timed: Workload, given: Sequence[Workload], make: Make
) -> Iterator[Callable[[float], Workload | None]]:
    """Ways to grow one size, or all, to the size to tune for: each takes a share of the way."""
    domain = Domain([one.problem.sizes for one in given])
    goal = timed.problem.sizes
    growing = [name for name in goal if goal[name] > base[name]]

    def at(names: Sequence[str], share: float) -> Workload | None:
        sizes = {
            name: _between(size, goal[name], share if name in names else 0) for name, size in base.items()
        }
        declared = domain.declared(sizes)
        return make(declared) if domain.is_affordable(declared) else None

    for names in [*([name] for name in growing), *([growing] if len(growing) > 1 else [])]:
        yield partial(at, names)


def _between(size: int, goal: int, share: float) -> int:
    """A size between a size and its goal; if the goal has whole vectors, so does this."""
    between = math.ceil(size * math.pow(goal / size, share))
    step = math.gcd(goal, 1 << max(0, between.bit_length() - _EXACT))
    return -(-between // step) * step
