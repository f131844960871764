"""Decides whether rounding alone could make a workload's results count as wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.error_bounds import SMALLEST_NORMAL, UNIT_ROUNDOFF
from autotune.devices.array_compare import EXACT, Tolerance, unlike
from autotune.devices.element_types import is_floating
from autotune.errors import BrokenReference
from autotune.problem.inputs import draw_inputs
from autotune.problem.reference import run_magnitude, run_reference
from autotune.problem.workload import Workload

_MAX_PARTS = 9
_SHARE = 0.25  # of the tolerance: last bits of inputs may always change a result by this much
_MAX_RATIO = 4.0  # or by so many times the change that they make on the usual data
_MIXER = 0x9E3779B1  # multiples of it have mixed high bits


def rounding_is_tolerated(workload: Workload, usual: Workload, reference: Path, compared: Set[str]) -> bool:
    """True if the tolerance allows additions in any order, denormals taken for zeros, and rounded inputs.

    Args:
        workload: A workload with other data.
        usual: The same with the data of the space.
        reference: The file with the reference.
        compared: The arrays that it returns.
    """
    return (
        is_order_free(workload, reference, compared)
        and allows_flushing(workload, reference)
        and is_well_conditioned(workload, usual, reference)
    )


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


def is_well_conditioned(workload: Workload, usual: Workload, reference: Path) -> bool:
    """True if the last bits of inputs change results by little, as a share of the tolerance, or as usual."""
    change = _largest_change(workload, reference)
    if change <= _SHARE:
        return True
    return math.isfinite(change) and change <= _MAX_RATIO * _largest_change(usual, reference)


def _largest_change(workload: Workload, reference: Path) -> float:
    """The largest change of a result, as a share of its tolerance, where inputs change in their last bits.

    It is infinite if a result is not finite. Equal elements change in different ways, as sums of them are
    rounded; but they stay equal for results that are compared exactly, such as the place of the largest. Of
    these, only whole numbers are judged: others, such as copies, may follow each bit.
    """
    inputs = draw_inputs(workload.problem, workload.arrays)
    results = _results(workload, reference, inputs, _changed(inputs, _by_value), _changed(inputs, _by_place))
    if results is None:
        return math.inf
    expected, by_value, by_place = results
    tolerances = {name: workload.tolerance_of(name) for name in expected}
    magnitudes = {}
    if any(tolerance.factor for tolerance in tolerances.values()):
        magnitudes = run_magnitude(reference, inputs, workload.problem, workload.arrays)
    changes = [0.0]
    for name, values in expected.items():
        tolerance = tolerances[name]
        if is_floating(values.dtype) and not np.isfinite(values).all():
            return math.inf
        if tolerance != EXACT and not values.dtype.names:
            changes.append(_share(by_place[name], values, tolerance, magnitudes.get(name)))
        elif not is_floating(values.dtype) and unlike(by_value[name], values, tolerance).any():
            return math.inf
    return max(changes)


def _share(
    result: NDArray[Any], expected: NDArray[Any], tolerance: Tolerance, magnitude: NDArray[Any] | None
) -> float:
    """The largest difference as a share of the tolerance."""
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    error = np.abs(result.astype(wide) - expected.astype(wide))
    allowed = tolerance.atol + tolerance.rtol * np.abs(expected.astype(wide))
    if magnitude is not None:
        allowed = allowed + tolerance.factor * magnitude
    with np.errstate(all="ignore"):
        return float(np.where(error == 0, 0.0, error / allowed).max(initial=0.0))


def _changed(
    inputs: Mapping[str, NDArray[Any]], odd: Callable[[NDArray[Any]], NDArray[np.bool_]]
) -> dict[str, NDArray[Any]]:
    """Each real number's neighbour: above if it is odd, else below. 0 stays 0."""
    changed = dict(inputs)
    for name, values in inputs.items():
        if is_floating(values.dtype):
            wide = values if values.dtype.itemsize > 2 else values.astype(np.float32)
            towards = np.where(odd(wide), np.inf, -np.inf).astype(wide.dtype)
            changed[name] = np.where(wide == 0, wide, np.nextafter(wide, towards))
    return changed


def _by_value(values: NDArray[Any]) -> NDArray[np.bool_]:
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    return np.asarray(bits * bits.dtype.type(_MIXER) >> bits.dtype.type(8 * values.dtype.itemsize - 1) == 1)


def _by_place(values: NDArray[Any]) -> NDArray[np.bool_]:
    places: NDArray[np.uint32] = np.arange(values.size, dtype=np.uint32).reshape(values.shape)
    return np.asarray(places * np.uint32(_MIXER) >> np.uint32(31) == 1)


def _results(
    workload: Workload, reference: Path, *given: Mapping[str, NDArray[Any]]
) -> list[dict[str, NDArray[Any]]] | None:
    """The reference's results for each of several inputs; None if it is not defined for one of them."""
    try:
        return [run_reference(reference, one, workload.problem, workload.arrays) for one in given]
    except BrokenReference:
        return None
