"""Runs a configuration where indices need more than 32 bits, on arrays that repeat a period on the device."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from autotune.core import timeline
from autotune.core.text import size_text
from autotune.core.trials import Binary, Failure, Status
from autotune.devices.array_compare import unlike
from autotune.devices.base import Bytes, Device
from autotune.devices.element_types import numpy_dtype
from autotune.errors import OutOfMemory, SetupError
from autotune.evaluation.buffers import launch_arguments
from autotune.evaluation.device_process import DeviceState
from autotune.evaluation.guarded_buffer import GuardedMemory
from autotune.evaluation.poison import GUARD_BYTES, as_bytes, poison
from autotune.evaluation.wrong_result import element_text
from autotune.problem.repeated import FEW, Repeated, RepeatedData, Sample
from autotune.problem.workload import Array, Workload

_MAX_RUN_S = 10.0  # of the run with many periods, as predicted from the one with a few
_POISONED_BYTES = 2**20  # written by the host; the device repeats them


def foretell(state: DeviceState, binary: Binary, workloads: Repeated) -> dict[str, Sample] | None:
    """Predict samples of the right result for many periods; None if that fails, or the run would take long.

    The configuration runs with a few periods, where the reference says whether such inputs make sense to it.
    """
    last = workloads.few[-1]
    try:
        data = RepeatedData(workloads, state.reference)
        if (computed := data.computed()) is None:
            return None
        failure, _ = _run(state, binary, last, data, computed)
        run_ms = _run(state, binary, last, data, {})[1]  # a first run may wait for the driver
        is_short = run_ms * 1e-3 * workloads.periods / FEW[-1] <= _MAX_RUN_S
        return data.foretold() if failure is None and is_short else None
    except SetupError:
        return None


def run_many(
    state: DeviceState, binary: Binary, workloads: Repeated, foretold: Mapping[str, Sample]
) -> Failure | None:
    """Run a configuration with many periods, and compare its results with samples; return what is wrong."""
    state.load(())  # frees the memory of all workloads
    data = RepeatedData(workloads, state.reference)
    try:
        with timeline.span(f"run at {size_text(workloads.many.problem.sizes)}"):
            return _run(state, binary, workloads.many, data, foretold)[0]
    except OutOfMemory as error:
        return Failure(Status.LAUNCH_ERROR, str(error))
    finally:
        state.device.forget()


def _run(
    state: DeviceState,
    binary: Binary,
    workload: Workload,
    data: RepeatedData,
    samples: Mapping[str, Sample],
) -> tuple[Failure | None, float]:
    """Run a configuration once and compare samples; return what is wrong, and the time in ms."""
    device = state.device
    needed = {*workload.used_names, *samples}
    arrays = {array.name: array for array in workload.arrays if array.name in needed}
    memories = {name: _filled(device, array, workload, data) for name, array in arrays.items()}
    program = state.program(binary, keep=True)
    starts = {name: memory.from_offset for name, memory in memories.items()}
    run_ms = device.run(program, workload.launches, launch_arguments(device, program, workload, starts))
    for name, sample in samples.items():
        dtype = numpy_dtype(arrays[name].dtype)
        parts = [
            memories[name].read(place * dtype.itemsize, dtype.itemsize) for place in sample.places.tolist()
        ]
        found = np.concatenate(parts).view(dtype)
        wrong = np.flatnonzero(unlike(found, sample.expected, sample.tolerance, sample.magnitudes))
        if wrong.size:
            first = int(wrong[0])
            where = element_text(arrays[name], int(sample.places[first]))
            few = f"{wrong.size:,} of a sample of {found.size:,}"
            detail = f"{where} is {found[first]}, expected {sample.expected[first]}, {few} elements differ"
            detail = f"{detail} (at {size_text(workload.problem.sizes)})"
            return Failure(Status.WRONG_RESULT, detail), run_ms
    return None, run_ms


def _filled(device: Device, array: Array, workload: Workload, data: RepeatedData) -> GuardedMemory:
    """An array that repeats its period along the axis on which it grows, or poison."""
    memory = GuardedMemory(device, array.size_bytes)
    period = data.periods.get(array.name)
    if period is None:
        content = poison(array, workload.problem.seed, may_be_nan=False)[:_POISONED_BYTES]
        _tile(device, memory, content, rows=1, row_bytes=array.size_bytes)
    else:
        rows = int(np.prod(array.shape[: data.growth(array.name).axis]))
        _tile(device, memory, as_bytes(period), rows, array.size_bytes // max(1, rows))
    return memory


def _tile(device: Device, memory: GuardedMemory, content: Bytes, rows: int, row_bytes: int) -> None:
    """Repeat each row of the content until the memory's row is full: what is there is copied behind it."""
    if not content.size:
        return
    period, period_bytes = device.allocate(content.size), content.size // rows
    device.write(period, content)
    for row in range(rows):
        start = GUARD_BYTES + row * row_bytes
        done = min(period_bytes, row_bytes)
        device.copy(memory.whole, period, done, (start, row * period_bytes))
        while done < row_bytes:
            more = min(done, row_bytes - done)
            device.copy(memory.whole, memory.whole, more, (start + done, start))
            done += more
