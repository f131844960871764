"""Problems half-way between those of a sweep, where its candidates are timed, too."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import sqrt

from autotune.errors import SpaceError
from autotune.space import bind
from autotune.tuning.task import TuningTask

# A middle is rounded to such a part of the power of two that divides both sizes, so that kernels for
# multiples of 64 only are timed between 512 and 1,024, too.
_PARTS = 8


def halfway(tasks: Sequence[TuningTask]) -> list[TuningTask]:
    """The tasks half-way between neighbouring ones, on a logarithmic axis, where the default is valid.

    None if several sizes vary: there would be more of them than of the tasks themselves.
    """
    problem = tasks[0].space.problem
    swept = {name: sorted({task.space.problem.sizes[name] for task in tasks}) for name in problem.sizes}
    varied = [name for name, sizes in swept.items() if len(sizes) > 1]
    if len(varied) != 1:
        return []
    (name,) = varied
    found = []
    for low, high in pairwise(swept[name]):
        step = max(1, min(low & -low, high & -high) // _PARTS)
        middle = step * round(sqrt(low * high) / step)
        if low < middle < high:
            between = replace(problem, sizes={**problem.sizes, name: middle})
            with suppress(SpaceError):  # nothing is valid there
                task = replace(tasks[0], space=bind(tasks[0].spec, tasks[0].device, between))
                if not task.space.why_invalid(task.spec.default):
                    found.append(task)
    return found
