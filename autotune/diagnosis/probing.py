"""Probes of the device process for diagnoses and ceilings, other than the times of runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from statistics import median

import numpy as np

from autotune.core.trials import Binary
from autotune.evaluation.device_process import DeviceState
from autotune.problem.baselines import elapsed_ms
from autotune.problem.workload import Workload

_COPIES = 7  # copies, of which the median counts


def variable_after_run(state: DeviceState, binary: Binary, workload: Workload, name: str) -> bytes:
    """Run a configuration once on its pristine arrays, and return the content of a variable of its binary."""
    program = state.program(binary)
    state.buffers(workload).run_anew(program)
    return state.device.read_variable(program, name).tobytes()


def waited_s(state: DeviceState, binary: Binary, workload: Workload) -> float:
    """Time from the host's launch to the end of its wait: the best of 100."""
    buffers, program = state.buffers(workload), state.program(binary)
    return min(elapsed_ms(lambda: buffers.run(program, graph=False)) for _ in range(100)) * 1e-3


def transfer_ms(state: DeviceState, size_bytes: int, *, pinned: bool) -> tuple[float, float]:
    """Time to copy so many bytes to the device, and back, in ms: the median of several after a first one.

    The host's memory is pinned or pageable, and all its pages have been touched.
    """
    device, data = state.device, np.ones(size_bytes, np.uint8)
    buffer = device.allocate(size_bytes)
    with device.pinned(data) if pinned else nullcontext():
        return (
            _median_ms(lambda: device.write(buffer, data)),
            _median_ms(lambda: device.read(buffer, size_bytes, data)),
        )


def _median_ms(copy: Callable[[], object]) -> float:
    copy()
    return median(elapsed_ms(copy) for _ in range(_COPIES))
