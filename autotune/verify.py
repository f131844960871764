"""Correctness of one run: guard zones, unchanged inputs, results against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.devices.base import Bytes, Device, Program
from autotune.jobs import Case
from autotune.model import Failure, Status, Verdict
from autotune.workspace import GUARD_VALUE, Slot, Workspace


def verify(device: Device, program: Program, case: Case, workspace: Workspace) -> Verdict:
    """Restore every array, run the plan once, and check all that it touched.

    Raises what `Device.run` raises.
    """
    slots = workspace.slots(case)
    for slot in slots:
        slot.restore()
    device.run(program, case.launches, workspace.arguments(case))
    return check(case, workspace, slots)


def check(case: Case, workspace: Workspace, slots: tuple[Slot, ...]) -> Verdict:
    """Compare memory as it is now with what a right run leaves behind."""
    repeatable = True
    for slot in slots:
        below, content, above = slot.read()
        failure = _outside(slot, below, above) or _inside(slot, content, case, workspace)
        if failure is not None:
            return Verdict(failure, repeatable=False)
        if slot.array.role == "inout" and not np.array_equal(content, slot.initial):
            repeatable = False
    return Verdict(None, repeatable)


def first_difference(
    actual: NDArray[Any], expected: NDArray[Any], rtol: float, atol: float
) -> tuple[int, int] | None:
    """Flat index of the first element outside atol + rtol * |expected|, and how many there are.

    NaN differs from everything; equal infinities agree.
    """
    if rtol == 0 and atol == 0:
        differs = actual != expected
    else:
        wide = np.float64 if actual.dtype.kind != "c" else np.complex128
        a, e = actual.astype(wide), expected.astype(wide)
        with np.errstate(invalid="ignore"):
            differs = ~((np.abs(a - e) <= atol + rtol * np.abs(e)) | (a == e))
    count = int(np.count_nonzero(differs))
    return (int(np.argmax(differs)), count) if count else None


def _outside(slot: Slot, below: Bytes, above: Bytes) -> Failure | None:
    name = slot.array.name
    for zone, where in ((below[::-1], "before the start"), (above, "past the end")):
        damaged = np.flatnonzero(zone != GUARD_VALUE)
        if damaged.size:
            distance = int(damaged[0]) + 1
            detail = (
                f"wrote outside {name}: bytes damaged: {damaged.size}, the nearest is byte {distance} {where}"
            )
            return Failure(Status.OUT_OF_BOUNDS, detail)
    return None


def _inside(slot: Slot, content: Bytes, case: Case, workspace: Workspace) -> Failure | None:
    array = slot.array
    actual = content.view(array.dtype)
    if array.role == "in":
        if np.array_equal(content, slot.initial):
            return None
        index = int(np.flatnonzero(content != slot.initial)[0]) // actual.itemsize
        return _wrong(f"changed its input {_place(array.name, index, array.shape)}", case)
    expected = workspace.expected.get(array.name)
    if expected is None:
        return None
    expected = expected.reshape(-1)
    if expected.size != actual.size:
        return _wrong(
            f"the reference gives {expected.size} elements for {array.name}, not {actual.size}", case
        )
    difference = first_difference(actual, expected, case.rtol, case.atol)
    if difference is None:
        return None
    if array.role == "out" and np.array_equal(content, slot.initial):
        return _wrong(f"{array.name} was never written", case)
    index, count = difference
    place = _place(array.name, index, array.shape)
    of = f", {count} of {actual.size} elements differ" if actual.size > 1 else ""
    return _wrong(f"{place} is {actual[index]}, expected {expected[index]}{of}", case)


def _place(name: str, index: int, shape: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(str(int(part)) for part in np.unravel_index(index, shape))}]"


def _wrong(what: str, case: Case) -> Failure:
    sizes = " ".join(f"{name}={size}" for name, size in case.problem.sizes.items())
    return Failure(Status.WRONG_RESULT, f"{what} (at {sizes})")
