"""The midpoints of a sweep: problems half-way between its sizes, at which candidates are timed as well."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import sqrt

from autotune.errors import SpaceError
from autotune.space import bind
from autotune.tuning.task import TuningTask

# A midpoint is rounded to this fraction of the largest power of two that divides both sizes, so a kernel that
# only takes multiples of 64 still has one between 512 and 1,024.
_PARTS = 8


def halfway_tasks(tasks: Sequence[TuningTask]) -> list[TuningTask]:
    """The tasks half-way between neighbours on a logarithmic axis, if the default is valid there.

    Empty if several sizes vary: there would be more midpoints than tasks.
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
