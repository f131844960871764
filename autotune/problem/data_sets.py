"""Other values for a problem's random inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from autotune.core.error_bounds import SMALLEST, SMALLEST_NORMAL
from autotune.core.fills import RANDOM_FILLS, SPECIAL_VALUES
from autotune.core.records import Value
from autotune.problem.problem_instance import Array, ProblemInstance

DATA_SETS = ("zeros", "ones", "alternating", "smallest", "largest", "denormals")


def other_data(problem: ProblemInstance, name: str) -> ProblemInstance | None:
    """The problem with other legal values in its random inputs; None without such inputs.

    Args:
        problem: A problem whose expected results the reference computes.
        name: One of DATA_SETS or SPECIAL_VALUES. "zeros" and "ones", for ranges that have these, "smallest"
            and "largest": all elements are the same. "alternating": the smallest, the largest and, between
            them, 0 in turn. "denormals": the largest and the smallest denormal of each sign in turn. Special
            values take the places of a few random elements.
    """
    if problem.expected is not None or problem.trusted:
        return None
    arrays = tuple(replace(array, fill=_other_fill(array, name)) for array in problem.arrays)
    return None if arrays == problem.arrays else replace(problem, arrays=arrays)


def has_special_values(arrays: Iterable[Array]) -> bool:
    """True if special values are among the inputs, which may make results NaN."""
    return any(array.fill is not None and array.fill[0] in SPECIAL_VALUES for array in arrays)


def _other_fill(array: Array, name: str) -> tuple[Value, ...] | None:
    fill = array.fill
    if name in SPECIAL_VALUES:
        is_asked = fill is not None and fill[0] in RANDOM_FILLS and array.dtype in SMALLEST
        return (name, *fill) if fill is not None and is_asked else fill
    match fill:
        case ("normal", *_) if name == "denormals":
            return _denormals(array.dtype, -1, 1) or fill
        case ("uniform", int() | float() as low, int() | float() as high) if name == "denormals":
            return (_denormals(array.dtype, low, high) if low <= 0 <= high else ()) or fill
        case ("integers" | "uniform", int() | float() as low, int() | float() as high):
            fills: dict[str, tuple[Value, ...]] = {
                "zeros": ("constant", 0) if low < 0 < high else fill,
                "ones": ("constant", 1) if low < 1 < high else fill,
                "alternating": ("alternating", low, high, *((0,) if low < 0 < high else ())),
                "smallest": ("constant", low),
                "largest": ("constant", high),
                "denormals": fill,
            }
            return fills[name]
    return fill


def _denormals(dtype: str, low: float, high: float) -> tuple[Value, ...]:
    """A fill of denormals within a range around 0; empty for a range or a type without any."""
    if dtype not in SMALLEST or low == high:
        return ()
    sizes = (SMALLEST_NORMAL[dtype] - SMALLEST[dtype], SMALLEST[dtype])
    signs = [sign for sign, is_within in ((1, high > 0), (-1, low < 0)) if is_within]
    return ("alternating", *(sign * size for sign in signs for size in sizes))
