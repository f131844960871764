"""Decides whether rounding alone could make a workload's results count as wrong."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.error_bounds import SMALLEST_NORMAL, UNIT_ROUNDOFF
from autotune.devices.array_compare import EXACT, unlike
from autotune.devices.element_types import is_floating
from autotune.errors import BrokenReference
from autotune.problem.inputs import draw_inputs
from autotune.problem.reference import run_magnitude, run_reference
from autotune.problem.reference_cache import ReferenceCache
from autotune.problem.shapes import SHAPES
from autotune.problem.workload import Workload

_MAX_PARTS = 9
_SHARE = 0.25  # of the tolerance, for inputs that differ in their last bits


def allows_rounding(
    workload: Workload, reference: Path, compared: Set[str], cache: ReferenceCache | None = None
) -> bool:
    """True if the tolerance allows additions in any order, denormals taken for zeros, and rounded inputs.

    The verdict is kept like the results of a reference.
    """

    def judge() -> dict[str, NDArray[Any]]:
        allows = (
            is_order_free(workload, reference, compared)
            and allows_flushing(workload, reference)
            and is_well_conditioned(workload, reference)
        )
        return {"allows": np.array([allows], np.uint8)}

    found = judge() if cache is None else cache.result(reference, f"rounding {workload.identity_text}", judge)
    return bool(found["allows"].all())


def is_order_free(workload: Workload, reference: Path, compared: Set[str]) -> bool:
    """True if sums that are compared exactly are the same in any order.

    That holds if the element type holds the sums of magnitudes exactly: as whole numbers, or as multiples of
    a half, a quarter and so on, if they are that.
    """
    largest = {
        array.name: 1 / UNIT_ROUNDOFF[array.dtype]
        for array in workload.arrays
        if array.name in compared
        and array.dtype in UNIT_ROUNDOFF
        and workload.tolerance_of(array.name) == EXACT
    }
    if not largest:
        return True
    try:
        inputs = draw_inputs(workload.problem, workload.arrays)
        magnitudes = run_magnitude(reference, inputs, workload.problem, workload.arrays)
    except BrokenReference:
        return True  # it does not take absolute values
    return all(
        bool((magnitudes[name] * _parts(magnitudes[name]) <= most).all())
        for name, most in largest.items()
        if name in magnitudes
    )


def _parts(magnitudes: NDArray[Any]) -> int:
    """The smallest power of two that makes all whole when multiplied; 1 if none does."""
    powers = (2**power for power in range(_MAX_PARTS))
    return next((one for one in powers if np.array_equal(magnitudes * one, np.rint(magnitudes * one))), 1)


def allows_flushing(workload: Workload, reference: Path) -> bool:
    """True if zeros instead of denormal inputs change no result by more than the tolerance.

    Devices and compiler options decide whether denormals are flushed, often per operation.
    """
    inputs = draw_inputs(workload.problem, workload.arrays)
    smallest = {array.name: SMALLEST_NORMAL.get(array.dtype, 0.0) for array in workload.arrays}
    flushed = {
        name: np.where(np.abs(values) < smallest[name], values.dtype.type(0), values)
        if smallest[name]
        else values
        for name, values in inputs.items()
    }
    if all(np.array_equal(flushed[name], inputs[name]) for name in inputs):
        return True
    results = _results(workload, reference, inputs, flushed)
    if results is None:
        return False
    first, second = results
    return not any(unlike(second[name], first[name], workload.tolerance_of(name)).any() for name in first)


def is_well_conditioned(workload: Workload, reference: Path) -> bool:
    """True if inputs of other shapes, changed in their last bits, change results by less than the tolerance.

    Equal elements stay equal, and 0 stays 0. Results that are compared exactly count only if they are whole
    numbers, such as places: others, such as copies, may follow each bit. All results have to be finite.
    """
    shaped_ones = {array.name for array in workload.arrays if array.fill and array.fill[0] in SHAPES}
    if not shaped_ones:
        return True
    inputs = draw_inputs(workload.problem, workload.arrays)
    changed = {
        name: _changed(values) if name in shaped_ones and is_floating(values.dtype) else values
        for name, values in inputs.items()
    }
    results = _results(workload, reference, inputs, changed)
    if results is None:
        return False
    first, second = results
    for name, values in first.items():
        tolerance = workload.tolerance_of(name)
        if is_floating(values.dtype) and not np.isfinite(values).all():
            return False
        is_judged = not tolerance.factor and (tolerance != EXACT or not is_floating(values.dtype))
        if is_judged and unlike(second[name], values, tolerance.times(_SHARE)).any():
            return False
    return True


def _changed(values: NDArray[Any]) -> NDArray[Any]:
    """Each element's neighbour above or below, by its own bits."""
    wide = values if values.dtype.itemsize > 2 else values.astype(np.float32)
    bits = np.ascontiguousarray(wide).view(f"u{wide.dtype.itemsize}")
    mixed = bits * bits.dtype.type(0x9E3779B1) >> bits.dtype.type(8 * wide.dtype.itemsize - 1)
    towards = np.where(mixed == 1, np.inf, -np.inf).astype(wide.dtype)
    return np.where(wide == 0, wide, np.nextafter(wide, towards))


def _results(
    workload: Workload, reference: Path, *given: Mapping[str, NDArray[Any]]
) -> list[dict[str, NDArray[Any]]] | None:
    """The reference's results for each of several inputs; None if it is not defined for one of them."""
    try:
        return [run_reference(reference, one, workload.problem, workload.arrays) for one in given]
    except BrokenReference:
        return None
