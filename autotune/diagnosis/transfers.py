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
    used = [one for one in workload.arrays if one.name in workload.used_names]
    given = [one for one in used if (one.name in call.inputs if call else one.role in ("in", "inout"))]
    back = [one for one in used if (one.name in call.returns if call else one.role in ("out", "inout"))]
    given_bytes, back_bytes = (sum(array.size_bytes for array in arrays) for arrays in (given, back))
    timed_bytes = max(1, min(_MAX_BYTES, max(given_bytes, back_bytes)))
    found = context.worker.run(transfer_ms, timed_bytes, timeout_s=context.timeout_s, pinned=pinned)
    if isinstance(found, Failure):
        raise SetupError(f"transfers: {found}")
    to_device_ms, back_ms = found
    return (to_device_ms * given_bytes + back_ms * back_bytes) / timed_bytes
