"""Correctness of one run: guard zones, unchanged inputs, results against the reference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from autotune.core.records import size_text
from autotune.core.trials import Failure, Status, Verdict
from autotune.devices.base import Program
from autotune.evaluation.buffers import GuardedBuffer, ProblemBuffers
from autotune.evaluation.work_item import Array, ProblemInstance


def verify(program: Program, case: ProblemInstance, workspace: ProblemBuffers) -> Verdict:
    """Run the plan from poison and check all that it touched; then again after a run over other inputs.

    The second check finds a kernel that does its work only once, or only where it sees that it is not done:
    its outputs and its scratch hold what the other inputs gave, or, under every other seed, outputs that are
    right but for a part. Raises what `Device.run` raises.
    """
    first = attempt(program, case, workspace)
    if first.failure is not None:
        return first
    others = altered(case.arrays)
    for guarded in workspace.guarded_buffers(case):
        (guarded.alter if guarded.array.name in others else guarded.restore)()
    workspace.run(program, case)
    for guarded in workspace.guarded_buffers(case):
        if guarded.array.role == "out" and guarded.count > 1 and case.problem.seed % 2 == 0:
            guarded.put_right()
    second = attempt(program, case, workspace, kept=("out", "scratch"))
    if second.failure is None:
        return second
    failure = replace(second.failure, detail=f"after a run on other inputs: {second.failure.detail}")
    return replace(second, failure=failure)


def altered(arrays: Iterable[Array]) -> set[str]:
    """The arrays whose elements may change places and stay a legal input: random ones, and their copies.

    What is the transpose of another would no longer be it.
    """
    fills = {array.name: array.fill for array in arrays if array.fill is not None}
    sources = {name: str(fill[1]) for name, fill in fills.items() if fill[0] in ("copy", "transpose")}
    fixed = {name for name, fill in fills.items() if fill[0] not in ("copy", "integers", "uniform", "normal")}
    fixed |= {sources[name] for name in fixed & sources.keys()}
    for name in reversed(sources):  # a source comes before its copies
        if name in fixed:
            fixed.add(sources[name])
    for name, source in sources.items():
        if source in fixed:
            fixed.add(name)
    return fills.keys() - fixed


def attempt(
    program: Program,
    case: ProblemInstance,
    workspace: ProblemBuffers,
    *,
    kept: tuple[str, ...] = (),
    inputs: bool = True,
) -> Verdict:
    """Run the plan once and check it; arrays of the roles `kept` start as the last run left them.

    A later check may look at the inputs for this one. Raises what `Device.run` raises.
    """
    guarded_buffers = workspace.guarded_buffers(case)
    for guarded in guarded_buffers:
        if guarded.array.role not in kept:
            guarded.restore()
    run_ms = workspace.run(program, case)
    failure = check(case, workspace, inputs=inputs)
    changed = failure is None and any(
        workspace.difference(guarded.against_initial())
        for guarded in guarded_buffers
        if guarded.array.role == "inout"
    )
    return Verdict(failure, repeatable=failure is None and not changed, run_ms=run_ms)


def check(case: ProblemInstance, workspace: ProblemBuffers, *, inputs: bool = True) -> Failure | None:
    """Compare memory as it is now with what a right run leaves behind; None when it agrees.

    A failure is doubtful where something has changed that no right run of any configuration changes.
    """
    guarded_buffers = workspace.guarded_buffers(case)
    if workspace.check(
        case, [guarded for guarded in guarded_buffers if inputs or guarded.array.role != "in"]
    ):
        return None
    for guarded in guarded_buffers:
        if not guarded.is_trustworthy():
            detail = f"wrote far from any array: over what {guarded.array.name} is compared with"
            return Failure(Status.OUT_OF_BOUNDS, f"{detail} ({_sizes(case)})", is_doubtful=True)
    reasons = (_outside(guarded) or _inside(guarded, case, workspace) for guarded in guarded_buffers)
    failure = next(reason for reason in reasons if reason is not None)
    inputs_now = [
        workspace.difference(guarded.against_initial())
        for guarded in guarded_buffers
        if guarded.array.role == "in"
    ]
    return replace(failure, is_doubtful=any(inputs_now))


def _outside(guarded: GuardedBuffer) -> Failure | None:
    below, above = guarded.guards()
    name = guarded.array.name
    for zone, step, where in ((below, -1, "before the start"), (above, 1, "past the end")):
        damaged = np.flatnonzero((zone != guarded.guard)[::step])
        if damaged.size:
            nearest = int(damaged[0]) + 1
            detail = (
                f"wrote outside {name}: bytes damaged: {damaged.size}, the nearest is byte {nearest} {where}"
            )
            return Failure(Status.OUT_OF_BOUNDS, detail)
    return None


def _inside(guarded: GuardedBuffer, case: ProblemInstance, workspace: ProblemBuffers) -> Failure | None:
    """What is wrong with an array whose guard zones are whole."""
    array, change = guarded.array, workspace.difference(guarded.against_initial())
    if array.role == "in":
        return change and _wrong(f"changed its input {_place(array, guarded.index_of(change))}", case)
    difference = workspace.difference(guarded.against_expected(case.rtol, case.atol))
    if difference is None:
        return None
    if array.role == "out" and change is None:
        return _wrong(f"{array.name} was never written", case)
    index, count = difference[0] - guarded.guard_items, difference[1]
    found, wanted = guarded.values_at(index)
    others = f", {count} of {guarded.count} elements differ" if guarded.count > 1 else ""
    return _wrong(f"{_place(array, index)} is {found}, expected {wanted}{others}", case)


def _place(array: Array, index: int) -> str:
    return f"{array.name}[{', '.join(str(int(part)) for part in np.unravel_index(index, array.shape))}]"


def _wrong(what: str, case: ProblemInstance) -> Failure:
    return Failure(Status.WRONG_RESULT, f"{what} ({_sizes(case)})")


def _sizes(case: ProblemInstance) -> str:
    return f"at {size_text(case.problem.sizes)}"
