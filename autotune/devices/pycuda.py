"""NVIDIA GPUs through PyCUDA; the binaries come from the same compiler as for cuda.core."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pycuda.driver as driver

from autotune.cuda_driver import cuda_device
from autotune.devices.base import Buffer, Bytes, DeviceLost, LaunchError, Program
from autotune.devices.cuda_compiler import CudaCompiler
from autotune.devices.on_gpu import ComparedOnGpu, classified
from autotune.model import DeviceInfo, Launch
from autotune.trials import Binary


class PyCudaDevice(ComparedOnGpu):
    """One GPU with a context and a stream of its own."""

    driver_error = driver.Error

    def __init__(self, index: int) -> None:
        gpu = driver.Device(index)
        super().__init__(_describe(index), gpu.pci_bus_id())
        self._context = gpu.make_context()
        atexit.register(self._context.pop)  # PyCUDA aborts where a context outlives the interpreter
        self._stream = driver.Stream()
        self.stream = self._stream.handle
        self._start, self._end = driver.Event(), driver.Event()

    def allocate(self, size_bytes: int) -> Buffer:
        """Reserve global memory."""
        try:
            return driver.mem_alloc(max(1, size_bytes))
        except driver.Error as error:
            raise classified(error) from None

    def region(self, buffer: Buffer, offset_bytes: int, size_bytes: int) -> Buffer:
        """The same memory from an offset on; the parent is kept alive."""
        return _Region(buffer, offset_bytes)

    def write(self, buffer: Buffer, data: Bytes) -> None:
        """Copy to the GPU and wait."""
        if data.size:
            self._stream.synchronize()
            driver.memcpy_htod(int(buffer), np.ascontiguousarray(data))

    def read(self, buffer: Buffer, size_bytes: int) -> Bytes:
        """Wait for the stream and copy to the host."""
        data = np.empty(size_bytes, np.uint8)
        if size_bytes:
            try:
                self._stream.synchronize()
                driver.memcpy_dtoh(data, int(buffer))
            except driver.Error as error:
                raise DeviceLost(str(error)) from None
        return data

    def copy(self, target: Buffer, source: Buffer, size_bytes: int) -> None:
        """Copy within global memory, in the order of the stream."""
        driver.memcpy_dtod_async(int(target), int(source), size_bytes, self._stream)

    def fill(self, buffer: Buffer, byte: int, size_bytes: int) -> None:
        """Set every byte, in the order of the stream."""
        driver.memset_d8_async(int(buffer), byte, size_bytes, self._stream)

    def load(self, binary: Binary) -> Program:
        """Load a cubin; its kernels are looked up by name when they are launched."""
        try:
            return _Module(driver.module_from_buffer(binary.data))
        except driver.Error as error:
            raise classified(error) from None

    def enqueue(self, program: Program, launch: Launch, arguments: Mapping[str, Buffer | np.generic]) -> None:
        """Queue one launch on the device's stream."""
        values = [arguments[name] for name in launch.arguments]
        kernel = program.kernel(launch.entry, launch.shared_bytes)
        packed = [value if isinstance(value, np.generic) else np.uint64(int(value)) for value in values]
        kernel(*packed, grid=launch.grid, block=launch.block, shared=launch.shared_bytes, stream=self._stream)

    def start_clock(self) -> None:
        """Note the time at which the GPU gets here."""
        self._start.record(self._stream)

    def stop_clock(self) -> float:
        """Wait for what was queued; the time since `start_clock` in ms."""
        self._end.record(self._stream)
        self._end.synchronize()
        return float(self._end.time_since(self._start))


class _Region:
    """An address inside an allocation, which it keeps alive."""

    def __init__(self, parent: Buffer, offset_bytes: int) -> None:
        self._parent = parent
        self._address = int(parent) + offset_bytes

    def __int__(self) -> int:
        return self._address


class _Module:
    """A loaded cubin and the kernels that were asked for."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._functions: dict[tuple[str, int], Any] = {}

    def kernel(self, entry: str, shared_bytes: int) -> Any:
        """A kernel by name, allowed as much dynamic shared memory as the launch wants."""
        key = (entry, shared_bytes)
        if key not in self._functions:
            try:
                function = self._module.get_function(entry)
                if shared_bytes:  # with what the kernel declares itself it may be more than 48 KiB
                    function.set_attribute(
                        driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes
                    )
            except driver.Error as error:
                raise LaunchError(
                    f'no kernel {entry!r} to launch; is it declared extern "C"? ({error})'
                ) from None
            self._functions[key] = function
        return self._functions[key]


def list_devices() -> list[DeviceInfo]:
    """Every GPU that the driver shows; none without a driver."""
    try:
        driver.init()
        return [_describe(index) for index in range(driver.Device.count())]
    except driver.Error:
        return []


def open_device(index: int) -> PyCudaDevice:
    """Open the GPU of that number."""
    driver.init()
    return PyCudaDevice(index)


def open_compiler(index: int) -> CudaCompiler:
    """NVRTC for that GPU's architecture."""
    return CudaCompiler(_describe(index).architecture)


def _describe(index: int) -> DeviceInfo:
    return replace(cuda_device(index), backend="pycuda")
