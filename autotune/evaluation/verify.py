"""Verifies one run: guard zones whole, inputs unchanged, results equal to the reference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from autotune.core import timeline
from autotune.core.fills import RANDOM_FILLS
from autotune.core.text import count_text, size_text
from autotune.core.trials import ArrayFault, Failure, Status
from autotune.devices.base import Program
from autotune.errors import Blame
from autotune.evaluation.buffers import WorkloadBuffers
from autotune.evaluation.guarded_buffer import GuardedBuffer
from autotune.evaluation.poison import few_others_differ, others_come_first
from autotune.evaluation.wrong_result import describe, element_text
from autotune.problem.workload import Array, Workload


class CheckedRun(NamedTuple):
    """The failure of one run, None if it is right, and its time on the device."""

    failure: Failure | None
    run_ms: float


def verify(program: Program, buffers: WorkloadBuffers) -> Failure | None:
    """Check a run of the plan on poisoned outputs, and another one after a run on other inputs.

    The second run finds a kernel that works only once, or skips work that looks done. If it comes first, it
    also finds a kernel that keeps its first results in a variable. The problem's seed decides that, and how
    many inputs differ. Raises what `Device.run` raises.
    """
    seed = buffers.workload.problem.seed
    few = few_others_differ(seed)
    if not others_come_first(seed):
        return run_and_check(program, buffers).failure or after_other_inputs(program, buffers, few=few)
    kept = after_other_inputs(program, buffers, few=few)
    buffers.device.dirty_block_memory()
    return run_and_check(program, buffers).failure or kept  # what is always wrong is told as such


def after_other_inputs(program: Program, buffers: WorkloadBuffers, *, few: bool) -> Failure | None:
    """Run the plan on other inputs, then check a run on the right ones; raises LaunchError or DeviceLost.

    A few of the other inputs differ, or half of them.
    """
    others = altered(buffers.workload.arrays)
    for guarded in buffers.arrays():
        if guarded.array.name in others:
            guarded.alter(few=few)
        else:
            guarded.restore()
    buffers.run(program)
    if not others_come_first(buffers.workload.problem.seed):
        for guarded in buffers.arrays():
            if guarded.array.role == "out" and guarded.count > 1:
                guarded.write_nearly_expected()
    failure = run_and_check(program, buffers, kept=("out", "scratch")).failure
    return failure and replace(failure, detail=f"after a run on other inputs: {failure.detail}")


def altered(arrays: Iterable[Array]) -> set[str]:
    """Inputs that stay legal when their elements are rearranged: random ones and their copies.

    Arrays with a transpose are left out, because the two would no longer match.
    """
    fills = {array.name: array.fill for array in arrays if array.fill is not None}
    sources = {name: str(fill[1]) for name, fill in fills.items() if fill[0] in ("copy", "transpose")}
    fixed = {name for name, fill in fills.items() if fill[0] not in ("copy", *RANDOM_FILLS)}
    fixed |= {sources[name] for name in fixed & sources.keys()}
    for name in reversed(sources):  # a source is rearranged before its copies
        if name in fixed:
            fixed.add(sources[name])
    for name, source in sources.items():
        if source in fixed:
            fixed.add(name)
    return fills.keys() - fixed


def run_and_check(
    program: Program, buffers: WorkloadBuffers, *, kept: tuple[str, ...] = (), inputs: bool = True
) -> CheckedRun:
    """Run the plan once and check the result; raises LaunchError or DeviceLost.

    Arrays in `kept`, by role or name, keep the content from the last run. Without `inputs`, a later check
    sees whether these are unchanged.
    """
    run_ms = _run(program, buffers, kept)
    with timeline.span("compare arrays"):
        failure = compare_memory(buffers, inputs=inputs, poisoned="out" not in kept)
    if failure is not None and failure.fault is not None and failure.fault.is_unwritten:
        failure = _with_other_poison(program, buffers, kept, [failure.fault.array]) or failure
    elif failure is None and "out" not in kept:
        outputs = [guarded for guarded in buffers.arrays() if guarded.array.name not in kept]
        zeros = [guarded.array.name for guarded in outputs if guarded.begins_with_zeros]
        failure = _with_other_poison(program, buffers, kept, zeros) if zeros else None
    return CheckedRun(failure, run_ms)


def _run(program: Program, buffers: WorkloadBuffers, kept: tuple[str, ...]) -> float:
    for guarded in buffers.arrays():
        if guarded.array.role not in kept and guarded.array.name not in kept:
            guarded.restore()
    with timeline.span("launch"):
        return buffers.run(program)


def _with_other_poison(
    program: Program, buffers: WorkloadBuffers, kept: tuple[str, ...], names: Sequence[str]
) -> Failure | None:
    """The failure of one more run: a kernel may write the value that an output held, or leave it there."""
    outputs = [guarded for guarded in buffers.arrays() if guarded.array.name in names]
    for output in outputs:
        output.invert_poison()
    try:
        _run(program, buffers, kept)
        return compare_memory(buffers, poisoned=True)
    finally:
        for output in outputs:
            output.invert_poison()


def changed_inouts(buffers: WorkloadBuffers) -> tuple[str, ...]:
    """The inout arguments that the latest run changed, which must be restored before the next run."""
    return tuple(
        guarded.array.name
        for guarded in buffers.arrays()
        if guarded.array.role == "inout" and buffers.difference(guarded.against_initial())
    )


def compare_memory(
    buffers: WorkloadBuffers, *, inputs: bool = True, poisoned: bool = False
) -> Failure | None:
    """Compare memory with its state after a correct run; return None if they agree.

    If outputs began the run `poisoned`, elements that still hold that count as never written. An earlier run
    may be to blame if something changed that no correct run of any configuration changes.
    """
    arrays = buffers.arrays()
    if buffers.are_right([guarded for guarded in arrays if inputs or guarded.array.role != "in"]):
        return None
    for guarded in arrays:
        if not guarded.is_trustworthy():
            detail = f"wrote far from any array, over the expected values of {guarded.array.name}"
            return Failure(Status.OUT_OF_BOUNDS, f"{detail} ({_sizes(buffers.workload)})", Blame.PROCESS)
    reasons = (
        _outside(guarded, buffers.workload) or _inside(guarded, buffers, poisoned) for guarded in arrays
    )
    late = _wrong(
        "wrong at first, right when read again: the kernel wrote after its launch had ended", buffers.workload
    )
    failure = next(filter(None, reasons), late)
    inputs_now = [
        buffers.difference(guarded.against_initial()) for guarded in arrays if guarded.array.role == "in"
    ]
    return replace(failure, blame=Blame.PROCESS) if any(inputs_now) else failure


def wrong_arrays(buffers: WorkloadBuffers) -> list[GuardedBuffer]:
    """The arrays that differ from their state after a correct run."""
    return [guarded for guarded in buffers.arrays() if buffers.wrong(guarded) is not None]


def _outside(guarded: GuardedBuffer, workload: Workload) -> Failure | None:
    below, above = guarded.guards()
    name = guarded.array.name
    for zone, step, where in ((below, -1, "before the start"), (above, 1, "past the end")):
        damaged = np.flatnonzero((zone != guarded.guard)[::step])
        if damaged.size:
            nearest = int(damaged[0]) + 1
            detail = (
                f"wrote outside {name}: {count_text(damaged.size, 'byte')} damaged, the nearest is byte "
                f"{nearest} {where} ({_sizes(workload)})"
            )
            fault = ArrayFault(name, workload.problem.sizes)
            return Failure(Status.OUT_OF_BOUNDS, detail, fault=fault)
    return None


def _inside(guarded: GuardedBuffer, buffers: WorkloadBuffers, poisoned: bool) -> Failure | None:
    """The failure of an array whose guard zones are whole; None if it is right."""
    array, workload, difference = guarded.array, buffers.workload, buffers.wrong(guarded)
    if difference is None:
        return None
    at, count = difference
    fault = ArrayFault(array.name, workload.problem.sizes)
    if array.role == "in":
        return _wrong(f"changed its input {element_text(array, at)}", workload, fault)
    if poisoned and array.role == "out" and buffers.difference(guarded.against_initial()) is None:
        return _wrong(f"{array.name} was never written", workload, replace(fault, is_unwritten=True))
    detail, fault = describe(guarded, at, count, buffers, poisoned)
    return _wrong(detail, workload, fault)


def _wrong(detail: str, workload: Workload, fault: ArrayFault | None = None) -> Failure:
    return Failure(Status.WRONG_RESULT, f"{detail} ({_sizes(workload)})", fault=fault)


def _sizes(workload: Workload) -> str:
    return f"at {size_text(workload.problem.sizes)}"
