"""Launches on arrays and buffers of pyopencl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyopencl as cl

from autotune.compilers.base import driver_compiler
from autotune.core.launch_plan import needs_cuda
from autotune.core.records import Launch
from autotune.devices.opencl import build_log
from autotune.errors import CompileError, InputError, LaunchError
from autotune.hardware.identify import opencl_device
from autotune.runtime.launchers import View


class OpenCLLauncher:
    """One command queue."""

    dialect = "opencl"

    def __init__(self, queue: cl.CommandQueue) -> None:
        self.device = opencl_device(queue.device)
        self.place = (queue.context.int_ptr, queue.device.int_ptr)
        self._queue = queue
        self._event: cl.Event | None = None

    def view(self, array: Any) -> View:
        """View a contiguous Array that begins at the start of its buffer, or a Buffer."""
        if isinstance(array, cl.MemoryObject):
            return View(array, None, None, array.size)
        if not array.flags.c_contiguous or array.offset:
            raise ValueError("is not contiguous from the start of its buffer on")
        return View(array.base_data, array.dtype.name, array.shape, array.nbytes)

    def compiler(self, kind: str) -> str:
        """The driver's own compiler."""
        return driver_compiler(self.device)

    def compile(self, source: str, options: Sequence[str], kind: str, names: Sequence[str]) -> cl.Program:
        """Build for the queue's device; kernels of OpenCL C have one name."""
        try:
            program = cl.Program(self._queue.context, source)
            return program.build(options=["-cl-std=CL1.2", *options], devices=[self._queue.device])
        except cl.Error as error:
            raise CompileError(build_log(str(error))) from None

    def scratch(self, size_bytes: int) -> cl.Buffer:
        """Allocate a buffer; OpenCL keeps it until the kernels that use it are done."""
        try:
            return cl.Buffer(self._queue.context, cl.mem_flags.READ_WRITE, max(1, size_bytes))
        except cl.Error as error:
            raise LaunchError(f"{size_bytes} bytes of scratch memory: {error}") from None

    def set_variable(self, program: cl.Program, name: str, content: Any, size_bytes: int) -> None:
        """Refuse: OpenCL C has no variables that the host can write."""
        raise LaunchError(f"{name}: only CUDA has variables that the host can write")

    def launch(self, program: cl.Program, step: Launch, arguments: Mapping[str, Any]) -> None:
        """Enqueue one launch to start after the previous one, as a queue may be out of order."""
        if reason := needs_cuda(step):
            raise LaunchError(reason)
        total = tuple(blocks * threads for blocks, threads in zip(step.grid, step.block, strict=True))
        earlier = None if self._event is None else [self._event]
        try:
            kernel = cl.Kernel(program, step.entry)  # a new one for each call: its arguments are state
            kernel.set_args(*(arguments[name] for name in step.arguments))
            self._event = cl.enqueue_nd_range_kernel(self._queue, kernel, total, step.block, wait_for=earlier)
        except cl.Error as error:
            raise LaunchError(f"{step.entry}: {error}") from None

    def finish(self) -> cl.Event | None:
        """The event of the last launch."""
        return self._event


def open_launcher(arrays: Sequence[Any], stream: Any) -> OpenCLLauncher:
    """Open the given queue, else that of the first array that has one."""
    if not isinstance(stream, cl.CommandQueue | None):
        raise InputError(f"stream {stream!r}: expected a pyopencl.CommandQueue")
    queue = stream or next((array.queue for array in arrays if getattr(array, "queue", None)), None)
    if queue is None:
        raise InputError("these buffers belong to no queue; give one as stream=")
    return OpenCLLauncher(queue)
