"""The time of the copies around a call: inputs to the device, results back to the host."""

from __future__ import annotations

from math import prod

from autotune.core.trials import Failure
from autotune.devices.element_types import numpy_dtype
from autotune.errors import SetupError
from autotune.evaluation.probing import transfer_ms
from autotune.evaluation.work_item import Array, ProblemInstance
from autotune.tuning.context import TuningContext

_MAX_BYTES = 2**28  # larger amounts are extrapolated


def transferred_bytes(context: TuningContext, problem: ProblemInstance) -> tuple[int, int]:
    """Bytes that a call brings to the device and takes back: those of `call` in the space, else all."""
    call = context.task.spec.call
    used = [one for one in problem.arrays if one.name in problem.used]
    given = [one for one in used if (one.name in call.inputs if call else one.role in ("in", "inout"))]
    back = [one for one in used if (one.name in call.returns if call else one.role in ("out", "inout"))]
    return sum(map(array_bytes, given)), sum(map(array_bytes, back))


def call_transfer_ms(context: TuningContext, problem: ProblemInstance, *, pinned: bool) -> float:
    """The time of a call's copies from and to pinned or pageable memory; raises SetupError."""
    given, back = transferred_bytes(context, problem)
    size_bytes = max(1, min(_MAX_BYTES, max(given, back)))
    found: tuple[float, float] | Failure = context.worker.run(
        transfer_ms, size_bytes, timeout_s=context.timeout_s, pinned=pinned
    )
    if isinstance(found, Failure):
        raise SetupError(f"transfers: {found.status.value}: {found.detail}")
    return found[0] * given / size_bytes + found[1] * back / size_bytes


def array_bytes(array: Array) -> int:
    """The size of an array."""
    return prod(array.shape) * numpy_dtype(array.dtype).itemsize
