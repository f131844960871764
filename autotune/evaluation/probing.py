"""What a diagnosis or a ceiling asks of the device process besides the times of runs."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from autotune.core.trials import Binary, Failure, Status
from autotune.errors import LaunchError
from autotune.evaluation.baselines import elapsed_ms
from autotune.evaluation.device_process import DeviceState
from autotune.evaluation.work_item import ProblemInstance


def variable_after_run(
    state: DeviceState, binary: Binary, problem: ProblemInstance, name: str
) -> bytes | Failure:
    """Run a configuration once on its pristine arrays, and return the content of a variable of its binary."""
    try:
        buffers = state.buffers(problem)
        for guarded in buffers.guarded_buffers(problem):
            guarded.restore()
        program = state.program(binary)
        buffers.run(program, problem)
        return state.device.read_variable(program, name).tobytes()
    except LaunchError as error:
        return Failure(Status.LAUNCH_ERROR, str(error))


def waited_ms(state: DeviceState, binary: Binary, problem: ProblemInstance) -> float:
    """Time from the host's launch to the end of its wait, in ms: the best of 100."""
    buffers, program = state.buffers(problem), state.program(binary)
    return min(elapsed_ms(lambda: buffers.run(program, problem, graph=False)) for _ in range(100))


def transfer_ms(state: DeviceState, size_bytes: int, *, pinned: bool) -> tuple[float, float]:
    """Time to copy so many bytes to the device, and back, in ms: the best of three each.

    The host's memory is pinned or pageable.
    """
    device, data = state.device, np.ones(size_bytes, np.uint8)
    buffer = device.allocate(size_bytes)
    with device.pinned(data) if pinned else nullcontext():
        given = min(elapsed_ms(lambda: device.write(buffer, data)) for _ in range(3))
        return given, min(elapsed_ms(lambda: device.read(buffer, size_bytes, data)) for _ in range(3))
