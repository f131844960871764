"""The time of the copies around a call: inputs to the device, results back to the host."""

from __future__ import annotations

from autotune.core.trials import Failure
from autotune.diagnosis.probing import transfer_ms
from autotune.errors import SetupError
from autotune.problem.workload import Workload
from autotune.tuning.context import TuningContext

_MAX_BYTES = 2**28  # larger amounts are extrapolated


def call_transfer_ms(context: TuningContext, workload: Workload, *, pinned: bool) -> float:
    """The time of a call's copies from and to pinned or pageable memory; raises SetupError.

    They are of the arrays that `call` in the space names, else of all.
    """
    call = context.task.spec.call
    used = [array for array in workload.arrays if array.name in workload.used_names]
    given = [item for item in used if (item.name in call.inputs if call else item.role in ("in", "inout"))]
    back = [item for item in used if (item.name in call.returns if call else item.role in ("out", "inout"))]
    given_bytes, back_bytes = (sum(array.size_bytes for array in arrays) for arrays in (given, back))
    timed_bytes = max(1, min(_MAX_BYTES, max(given_bytes, back_bytes)))
    times = context.worker.run(transfer_ms, timed_bytes, timeout_s=context.timeout_s, pinned=pinned)
    if isinstance(times, Failure):
        raise SetupError(f"transfers: {times}")
    to_device_ms, back_ms = times
    return (to_device_ms * given_bytes + back_ms * back_bytes) / timed_bytes
