"""Correctness of one run: guard zones, unchanged inputs, results against the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from autotune.devices.base import Device, Program
from autotune.jobs import Array, Case
from autotune.trials import Failure, Status, Verdict
from autotune.workspace import GUARD_VALUE, Slot, Workspace


def verify(device: Device, program: Program, case: Case, workspace: Workspace) -> Verdict:
    """Run the plan twice and check all that it touched: from poisoned arrays, then over its own scratch.

    The second run finds a kernel that does its work only once. Raises what `Device.run` raises.
    """
    slots = workspace.slots(case)
    verdict = Verdict(None, repeatable=False)
    for kept in ((), ("scratch",)):
        for slot in slots:
            if slot.array.role not in kept:
                slot.restore()
        run_ms = device.run(program, case.launches, workspace.arguments(case))
        verdict = replace(check(case, slots), run_ms=run_ms)
        if verdict.failure is not None:
            break
    return verdict


def check(case: Case, slots: tuple[Slot, ...]) -> Verdict:
    """Compare memory as it is now with what a right run leaves behind."""
    repeatable = True
    for slot in slots:
        failure = _outside(slot) or _inside(slot, case)
        if failure is not None:
            return Verdict(failure, repeatable=False)
        if slot.array.role == "inout" and slot.first_change() is not None:
            repeatable = False
    return Verdict(None, repeatable)


def _outside(slot: Slot) -> Failure | None:
    below, above = slot.guards()
    name = slot.array.name
    for zone, where in ((below[::-1], "before the start"), (above, "past the end")):
        damaged = np.flatnonzero(zone != GUARD_VALUE)
        if damaged.size:
            nearest = int(damaged[0]) + 1
            detail = (
                f"wrote outside {name}: bytes damaged: {damaged.size}, the nearest is byte {nearest} {where}"
            )
            return Failure(Status.OUT_OF_BOUNDS, detail)
    return None


def _inside(slot: Slot, case: Case) -> Failure | None:
    array = slot.array
    if array.role == "in":
        changed = slot.first_change()
        return None if changed is None else _wrong(f"changed its input {_place(array, changed)}", case)
    difference = slot.difference(case.rtol, case.atol)
    if difference is None:
        return None
    if array.role == "out" and slot.first_change() is None:
        return _wrong(f"{array.name} was never written", case)
    index, count = difference
    found, wanted = slot.values_at(index)
    others = f", {count} of {slot.count} elements differ" if slot.count > 1 else ""
    return _wrong(f"{_place(array, index)} is {found}, expected {wanted}{others}", case)


def _place(array: Array, index: int) -> str:
    return f"{array.name}[{', '.join(str(int(part)) for part in np.unravel_index(index, array.shape))}]"


def _wrong(what: str, case: Case) -> Failure:
    sizes = " ".join(f"{name}={size}" for name, size in case.problem.sizes.items())
    return Failure(Status.WRONG_RESULT, f"{what} (at {sizes})")
