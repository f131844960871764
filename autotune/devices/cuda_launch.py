"""A launch on the GPU with its arguments."""

from __future__ import annotations

import ctypes

import numpy as np

from autotune.compilers.triton_binary import UNUSED, scratch_name
from autotune.core.records import Launch
from autotune.cuda.driver import check
from autotune.cuda.launch import launch_call
from autotune.cuda.module import Module
from autotune.devices.base import Arguments, Buffer


class KernelLaunch:
    """A launch that is prepared, so that no host work is timed; a call queues it. Raises DeviceError."""

    def __init__(
        self, module: Module, step: Launch, arguments: Arguments, stream: ctypes.c_void_p, scratch: Buffer = 0
    ) -> None:
        """Prepare it; `scratch` is the memory that it needs beside its arguments, if any."""
        self._module, self._entry = module, step.entry
        completed = module.cubins.completed(step)
        values = {**arguments, UNUSED: 0, scratch_name(step): scratch}
        self._values = [_in_memory(values[name]) for name in completed.arguments]
        self._queue = launch_call(completed, module.function(completed), self._values, stream)

    def __call__(self) -> None:
        """Queue the launch."""
        check(self._entry, self._queue())


def _in_memory(value: Buffer | np.generic) -> ctypes.c_uint64 | ctypes.Array[ctypes.c_char]:
    """An argument as it lies in a kernel's parameters; a buffer is an address."""
    if not isinstance(value, np.generic):
        return ctypes.c_uint64(int(value))
    content = value.tobytes()
    return ctypes.create_string_buffer(content, len(content))
