"""Measurements of a verified configuration in the device process: samples, energy and conditions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from autotune.core.records import Value
from autotune.core.trials import USUAL, Binary, CallMode, Failure
from autotune.evaluation.device_process import DeviceState
from autotune.evaluation.poison import as_bytes
from autotune.evaluation.stopwatch import Stopwatch
from autotune.evaluation.verify import altered, compare_memory
from autotune.problem.workload import Workload


def sample(
    state: DeviceState,
    binary: Binary,
    workload: Workload,
    call_mode: CallMode = USUAL,
    *,
    count: int,
    batch: int,
    repeatable: bool,
    is_checked: bool = True,
) -> tuple[float, ...] | Failure:
    """Take `count` samples of a configuration, in ms, after a warm-up.

    All but the last are on inputs of which a few elements differ: a kernel that has kept their results is
    found. Returns a Failure when the timed runs leave a wrong result. With `is_checked` false, it may compute
    something else, or nothing.
    """
    program, buffers = state.program(binary, keep=True), state.buffers(workload)
    stopwatch = Stopwatch(program, buffers, call_mode, changed=() if repeatable else None)
    stopwatch.batch = batch if repeatable else 1
    others = altered(workload.arrays) if repeatable else set()
    inputs = [guarded for guarded in buffers.arrays() if guarded.array.name in others]
    for guarded in inputs:
        guarded.alter_few()
    if not stopwatch.warms_up:
        stopwatch.warm_up(1)
    samples = [stopwatch.sample_ms() for _ in range(count - 1)]
    for guarded in inputs:
        guarded.alter_few(back=True)
    samples.append(stopwatch.sample_ms())
    failure = compare_memory(buffers) if is_checked else None
    return failure or tuple(samples)


def output_hashes(
    state: DeviceState, binary: Binary, workload: Workload, runs: int
) -> tuple[dict[str, str], ...]:
    """The hash of each output after each of several runs on the same arrays."""
    program, buffers = state.program(binary, keep=True), state.buffers(workload)
    hashes = []
    for _ in range(runs):
        buffers.run_anew(program)
        written = (guarded for guarded in buffers.arrays() if guarded.array.role in ("out", "inout"))
        hashes.append(
            {
                guarded.array.name: hashlib.sha256(as_bytes(guarded.content()).data).hexdigest()
                for guarded in written
            }
        )
    return tuple(hashes)


def energy(
    state: DeviceState,
    binary: Binary,
    workload: Workload,
    call_mode: CallMode = USUAL,
    *,
    run_ms: float,
    seconds: float,
    repeatable: bool,
) -> float | Failure | None:
    """Measure the energy of one run of a verified configuration, in J; None if the device has no counter.

    Returns a Failure when the runs leave a wrong result.
    """
    program, buffers = state.program(binary, keep=True), state.buffers(workload)
    stopwatch = Stopwatch(program, buffers, call_mode, changed=() if repeatable else None)
    energy_j = stopwatch.energy_j(run_ms, seconds)
    return compare_memory(buffers) or energy_j


def conditions(state: DeviceState) -> Mapping[str, Value]:
    """The device's present conditions, such as clocks and temperature."""
    return state.device.conditions()
