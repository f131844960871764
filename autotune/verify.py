"""Correctness of one run: guard zones, unchanged inputs, results against the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from autotune.devices.base import Program
from autotune.jobs import Array, Case
from autotune.trials import Failure, Status, Verdict
from autotune.workspace import GUARD_VALUE, Slot, Workspace


def verify(program: Program, case: Case, workspace: Workspace) -> Verdict:
    """Run the plan twice and check all that it touched: from poisoned arrays, then over its own scratch.

    The second run finds a kernel that does its work only once. Raises what `Device.run` raises.
    """
    first = attempt(program, case, workspace, inputs=False)
    return first if first.failure is not None else attempt(program, case, workspace, kept=("scratch",))


def attempt(
    program: Program, case: Case, workspace: Workspace, *, kept: tuple[str, ...] = (), inputs: bool = True
) -> Verdict:
    """Run the plan once and check it; arrays of the roles `kept` start as the last run left them.

    A later check may look at the inputs for this one. Raises what `Device.run` raises.
    """
    slots = workspace.slots(case)
    for slot in slots:
        if slot.array.role not in kept:
            slot.restore()
    run_ms = workspace.run(program, case)
    failure = check(case, workspace, inputs=inputs)
    changed = failure is None and any(
        workspace.difference(slot.against_initial()) for slot in slots if slot.array.role == "inout"
    )
    return Verdict(failure, repeatable=failure is None and not changed, run_ms=run_ms)


def check(case: Case, workspace: Workspace, *, inputs: bool = True) -> Failure | None:
    """Compare memory as it is now with what a right run leaves behind; None when it agrees.

    A failure is doubtful where something has changed that no right run of any configuration changes.
    """
    slots = workspace.slots(case)
    if workspace.check(case, [slot for slot in slots if inputs or slot.array.role != "in"]):
        return None
    for slot in slots:
        if not slot.is_trustworthy():
            detail = f"wrote far from any array: over what {slot.array.name} is compared with"
            return Failure(Status.OUT_OF_BOUNDS, f"{detail} ({_sizes(case)})", is_doubtful=True)
    reasons = (_outside(slot) or _inside(slot, case, workspace) for slot in slots)
    failure = next(reason for reason in reasons if reason is not None)
    inputs_now = [workspace.difference(slot.against_initial()) for slot in slots if slot.array.role == "in"]
    return replace(failure, is_doubtful=any(inputs_now))


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


def _inside(slot: Slot, case: Case, workspace: Workspace) -> Failure | None:
    """What is wrong with an array whose guard zones are whole."""
    array, change = slot.array, workspace.difference(slot.against_initial())
    if array.role == "in":
        return change and _wrong(f"changed its input {_place(array, slot.index_of(change))}", case)
    difference = workspace.difference(slot.against_expected(case.rtol, case.atol))
    if difference is None:
        return None
    if array.role == "out" and change is None:
        return _wrong(f"{array.name} was never written", case)
    index, count = difference[0] - slot.guard_items, difference[1]
    found, wanted = slot.values_at(index)
    others = f", {count} of {slot.count} elements differ" if slot.count > 1 else ""
    return _wrong(f"{_place(array, index)} is {found}, expected {wanted}{others}", case)


def _place(array: Array, index: int) -> str:
    return f"{array.name}[{', '.join(str(int(part)) for part in np.unravel_index(index, array.shape))}]"


def _wrong(what: str, case: Case) -> Failure:
    return Failure(Status.WRONG_RESULT, f"{what} ({_sizes(case)})")


def _sizes(case: Case) -> str:
    return "at " + " ".join(f"{name}={size}" for name, size in case.problem.sizes.items())
