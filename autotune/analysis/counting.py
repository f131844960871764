"""Runs a configuration once with counters in its PTX."""

from __future__ import annotations

import hashlib
import struct

from autotune.compilers.ptx_counters import COUNTER_BYTES, VARIABLE, Counts, counts_of, with_counters
from autotune.core.trials import Binary, Failure
from autotune.errors import InputError, SetupError
from autotune.evaluation.instance import KernelInstance
from autotune.evaluation.probing import variable_after_run
from autotune.tuning.context import TuningContext


def count_instructions(context: TuningContext, instance: KernelInstance) -> Counts:
    """What a run of a configuration executes.

    Raises:
        InputError: The device or the kernel's language has no PTX.
        SetupError: The counted kernel does not run.
        CompileError: NVRTC refuses the source.
    """
    task = context.task
    if task.dialect != "cuda" or task.spec.source.suffix == ".py" or task.spec.compiler == "nvcc":
        raise InputError("that needs a CUDA device and a kernel that NVRTC compiles")
    from autotune.compilers.nvrtc import CudaCompiler

    architecture = task.device.architecture
    ptx, symbols = CudaCompiler(architecture).ptx(instance.source, instance.options, instance.names)
    counted = with_counters(ptx, architecture)
    data = counted.text.encode() + b"\0"
    own = {name: symbol for name, symbol in symbols.items() if name != symbol}
    binary = Binary(data, hashlib.sha256(data).hexdigest(), "", 0.0, symbols=own)
    found: bytes | Failure = context.run_on(instance.problem, variable_after_run, binary, VARIABLE)
    if isinstance(found, Failure):
        raise SetupError(str(found))
    return counts_of(counted, struct.unpack(f"<{len(found) // COUNTER_BYTES}Q", found))
