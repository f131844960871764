"""Whole calls in pieces: inputs are copied in, launches run, results are copied out, on several streams."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain, islice

import numpy as np

from autotune.core.trials import Binary, Failure, Status
from autotune.devices.base import PipelinedRun
from autotune.evaluation.buffers import ProblemBuffers, SharedBuffers
from autotune.evaluation.device_process import DeviceState
from autotune.evaluation.guarded_buffer import PAGE_BYTES, GuardedBuffer
from autotune.evaluation.work_item import ProblemInstance

MAX_STREAMS = 3  # one copies in, one computes, one copies out
_RUNS = 3


def pieces_ms(
    state: DeviceState,
    binary: Binary,
    problem: ProblemInstance,
    count: int,
    given: Collection[str],
    back: Collection[str],
) -> float | Failure:
    """Time `count` calls of a problem, each with pinned host memory of its own, in ms: the best of three.

    Calls of different streams, each with device memory of its own, may overlap. What the last call of each
    stream computes and copies to the host is checked.

    Args:
        state: The device process.
        binary: The configuration.
        problem: One piece.
        count: Of calls.
        given: The arrays that are copied to the device before the launches.
        back: Those that are copied to the host after them.
    """
    for array in problem.arrays:
        if array.symbol:
            return Failure(Status.LAUNCH_ERROR, f"{array.symbol}: streams cannot have a variable each")
        if array.role == "inout" and array.name in problem.used and array.name not in given:
            return Failure(
                Status.LAUNCH_ERROR, f"{array.name}: every call changes it, and no call begins with it"
            )
    device, data = state.device, state.data(problem)
    device.forget()  # the arrays of an earlier call
    sets = [ProblemBuffers(problem, SharedBuffers(device, data)) for _ in range(min(count, MAX_STREAMS))]
    arrays = [buffers.arrays() for buffers in sets]
    try:  # one array: it is pinned at once
        host = np.zeros(count * sum(map(_host_bytes, arrays[0])), np.uint8)
    except MemoryError as error:
        return Failure(Status.LAUNCH_ERROR, f"{count} calls need more memory than the host has: {error}")
    parts = iter(np.split(host, np.cumsum([_host_bytes(one) for one in arrays[0]] * count)[:-1]))
    program = state.program(binary)
    runs = []
    for number in range(count):
        stream = number % len(sets)
        copies = {
            one.array.name: (one.region, part[: one.size_bytes])
            for one, part in zip(arrays[stream], islice(parts, len(arrays[stream])), strict=True)
        }
        for name in given:
            copies[name][1][:] = np.ascontiguousarray(data.inputs[name]).reshape(-1).view(np.uint8)
        runs.append(
            PipelinedRun(
                problem.launches,
                sets[stream].arguments(program),
                [copies[name] for name in given],
                [copies[name] for name in back],
                1 + stream,
            )
        )
    with device.pinned(host):
        time_ms = min(device.run_pipelined(program, runs) for _ in range(_RUNS))
        # no result of these runs is left for the one that is checked
        for guarded in chain.from_iterable(arrays):
            guarded.is_pristine = False
            guarded.restore()
        for run in runs:
            for _, part in run.results:
                part[:] = 0xFF
        device.run_pipelined(program, runs)
    if not all(one.are_right(guarded) for one, guarded in zip(sets, arrays, strict=True)):
        return Failure(Status.WRONG_RESULT, "a piece computes something else than the reference")
    for run in runs[-len(sets) :]:
        if not all(np.array_equal(device.read(buffer, part.size), part) for buffer, part in run.results):
            return Failure(Status.WRONG_RESULT, "a result on the host is not the one on the device")
    return time_ms


def _host_bytes(guarded: GuardedBuffer) -> int:
    """What an array takes of the host's memory: whole pages."""
    return -(-guarded.size_bytes // PAGE_BYTES) * PAGE_BYTES
