"""Other values for a workload's random inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from autotune.core.error_bounds import SMALLEST, SMALLEST_NORMAL
from autotune.core.fills import RANDOM_FILLS, SPECIAL_VALUES
from autotune.core.records import Value
from autotune.problem.shapes import SHAPES, fill_of_shape
from autotune.problem.workload import Array, Workload

DATA_SETS = ("zeros", "ones", "alternating", "smallest", "largest", "denormals", *SHAPES)
MAX_BYTES = 2**22  # a larger size to tune for gets no shapes: its reference would run for each
_TILE = 16  # divides most tiles
_MARGIN = 1 / 8  # of the tolerance, which the default must keep: other orders of additions differ more


def other_data(workload: Workload, name: str) -> Workload | None:
    """The workload with other legal values in its random inputs; None without such inputs.

    Args:
        workload: A workload whose expected results the reference computes.
        name: One of DATA_SETS or SPECIAL_VALUES. "zeros" and "ones", for ranges that have these, "smallest"
            and "largest": all elements are the same. "alternating": the smallest, the largest and, between
            them, 0 in turn. "denormals": the largest and the smallest denormal of each sign in turn. A shape
            of SHAPES changes the drawn values. Special values take the places of a few random elements.
    """
    if workload.expected is not None or workload.trusted:
        return None
    arrays = tuple(replace(array, fill=_other_fill(array, name)) for array in workload.arrays)
    return None if arrays == workload.arrays else replace(workload, arrays=arrays)


class OnOtherData(NamedTuple):
    """A workload with the data of the space, and with another data set."""

    usual: Workload
    other: Workload


def on_other_data(name: str, verify_workloads: Sequence[Workload], timed: Workload) -> Iterator[OnOtherData]:
    """A data set at its sizes: for SHAPES a large one and one with a remainder, for others all to verify.

    The size to tune for, `timed`, may be the large one if it is small enough.
    """
    for usual in _at_sizes(name, verify_workloads, timed):
        if workload := other_data(usual, name):
            yield OnOtherData(usual, workload)


def _at_sizes(name: str, verify_workloads: Sequence[Workload], timed: Workload) -> Sequence[Workload]:
    if name not in SHAPES:
        return verify_workloads
    fitting = [*verify_workloads, *([timed] if timed.size_bytes <= MAX_BYTES else [])]
    large = max(fitting, key=lambda workload: workload.size_bytes, default=None)
    others = [one for one in verify_workloads if _has_rest(one)] or verify_workloads
    turn = [*SHAPES].index(name) % max(1, len(others))
    return [*(one for one in others[turn : turn + 1] if one is not large), *([large] if large else [])]


def _has_rest(workload: Workload) -> bool:
    """True if tiles probably leave a remainder of a size: its filling may be wrong for some data."""
    return any(size > _TILE and size % _TILE for size in workload.problem.sizes.values())


def with_margin(workload: Workload) -> Workload:
    """The workload with a narrower tolerance, if its data have one of SHAPES; others keep the usual one."""
    has_shape = any(array.fill and array.fill[0] in SHAPES for array in workload.arrays)
    return with_tolerance(workload, _MARGIN) if has_shape else workload


def with_tolerance(workload: Workload, times: float) -> Workload:
    """The workload with its tolerance times a factor."""
    bounds = tuple((name, bound.times(times)) for name, bound in workload.bounds)
    return replace(workload, tolerance=workload.tolerance.times(times), bounds=bounds)


def has_special_values(arrays: Iterable[Array]) -> bool:
    """True if special values are among the inputs, which may make results NaN."""
    return any(array.fill is not None and array.fill[0] in SPECIAL_VALUES for array in arrays)


def _other_fill(array: Array, name: str) -> tuple[Value, ...] | None:
    fill = array.fill
    if name in SPECIAL_VALUES:
        is_asked = fill is not None and fill[0] in RANDOM_FILLS and array.dtype in SMALLEST
        return (name, *fill) if fill is not None and is_asked else fill
    if name in SHAPES:
        return fill_of_shape(name, fill, array.dtype, array.shape)
    match fill:
        case ("normal", *_) if name in ("zeros", "ones"):
            return ("constant", int(name == "ones"))
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
