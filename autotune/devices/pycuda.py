"""NVIDIA GPUs through PyCUDA; the compiler is the same as for cuda.core."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pycuda.driver as driver

from autotune.compilers.nvrtc import CudaCompiler
from autotune.core.records import DeviceInfo, Launch
from autotune.core.trials import Binary
from autotune.devices.base import Arguments, Program
from autotune.devices.cuda_common import CudaDeviceBase, packed
from autotune.devices.cuda_memory import classified
from autotune.devices.nvml import NvmlMonitor
from autotune.errors import LaunchError
from autotune.hardware.cuda_driver import cuda_device


class PyCudaDevice(CudaDeviceBase):
    """One GPU with a context and a stream of its own."""

    driver_error = driver.Error

    def __init__(self, index: int) -> None:
        gpu = driver.Device(index)
        super().__init__(_describe(index), gpu.pci_bus_id())
        self._context = gpu.make_context()
        atexit.register(self._context.pop)  # PyCUDA aborts if a context outlives the interpreter
        self._stream = driver.Stream()
        self.stream = self._stream.handle
        self._start, self._end = driver.Event(), driver.Event()

    def load(self, binary: Binary) -> Program:
        """Load a cubin; its kernels are looked up at their first launch."""
        try:
            return _Module(driver.module_from_buffer(binary.data), binary)
        except driver.Error as error:
            raise classified(error) from None

    def prepared(self, program: Program, launch: Launch, arguments: Arguments) -> Callable[[], object]:
        """Return a function that queues the launch on the device's stream."""
        kernel = program.kernel(launch.entry, launch.shared_bytes)
        values = packed(launch, arguments)
        options = {"grid": launch.grid, "block": launch.block, "shared": launch.shared_bytes}
        return partial(kernel, *values, **options, stream=self._stream)

    def start_clock(self) -> None:
        """Record the start event."""
        self._start.record(self._stream)

    def stop_clock(self) -> float:
        """Record the end event and wait for it; return the time since `start_clock` in ms."""
        self._end.record(self._stream)
        self._end.synchronize()
        return float(self._end.time_since(self._start))


class _Module:
    """A loaded cubin and the kernels that were looked up in it."""

    def __init__(self, module: Any, binary: Binary) -> None:
        self._module = module
        self._binary = binary
        self._functions: dict[tuple[str, int], Any] = {}

    def kernel(self, entry: str, shared_bytes: int) -> Any:
        """Look up a kernel and allow it the dynamic shared memory of the launch."""
        key = (entry, shared_bytes)
        if key not in self._functions:
            try:
                function = self._module.get_function(self._binary.symbol(entry))
                if shared_bytes:  # with the static shared memory this may exceed 48 KiB
                    function.set_attribute(
                        driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes
                    )
            except driver.Error as error:
                raise LaunchError(f"no kernel {entry!r} to launch ({error})") from None
            self._functions[key] = function
        return self._functions[key]

    def variable(self, name: str) -> tuple[int, int]:
        """Address and size in bytes of a variable; raises LaunchError."""
        try:
            address, size_bytes = self._module.get_global(self._binary.symbol(name))
        except driver.Error as error:
            raise LaunchError(f"no variable {name!r} in the binary: {error}") from None
        return int(address), int(size_bytes)


def list_devices() -> list[DeviceInfo]:
    """List the GPUs that the driver shows; none without a driver."""
    try:
        driver.init()
        gpus = [driver.Device(index).pci_bus_id() for index in range(driver.Device.count())]
        return [replace(_describe(index), limits=NvmlMonitor(gpu).limits()) for index, gpu in enumerate(gpus)]
    except driver.Error:
        return []


def open_device(index: int) -> PyCudaDevice:
    """Open the GPU with this number."""
    driver.init()
    return PyCudaDevice(index)


def open_compiler(index: int) -> CudaCompiler:
    """Open NVRTC for that GPU's architecture."""
    return CudaCompiler(_describe(index).architecture)


def _describe(index: int) -> DeviceInfo:
    return replace(cuda_device(index), backend="pycuda")
