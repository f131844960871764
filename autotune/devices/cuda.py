"""NVIDIA GPUs through cuda.core."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from cuda.bindings import driver
from cuda.core import Buffer as Memory
from cuda.core import Device as Gpu
from cuda.core import EventOptions, Kernel, LaunchConfig, ObjectCode, launch
from cuda.core._utils.cuda_utils import CUDAError  # the only name cuda.core gives its errors

from autotune.cuda_driver import cuda_device
from autotune.devices.base import Buffer, Bytes, DeviceLost, LaunchError, Program
from autotune.devices.cuda_compiler import CudaCompiler
from autotune.devices.on_gpu import ComparedOnGpu, classified
from autotune.model import DeviceInfo, Launch
from autotune.trials import Binary


class CudaDevice(ComparedOnGpu):
    """One GPU, its primary context and a stream of its own."""

    driver_error = CUDAError

    def __init__(self, index: int) -> None:
        self._index = index
        gpu = Gpu(index)
        super().__init__(cuda_device(index), gpu.pci_bus_id)
        gpu.set_current()
        self._stream = gpu.create_stream()
        self.stream = int(self._stream.handle)
        timed = EventOptions(timing_enabled=True)
        self._start, self._end = gpu.create_event(timed), gpu.create_event(timed)

    def allocate(self, size_bytes: int) -> Buffer:
        """Reserve global memory as most programs do; in memory from a pool some kernels take 5% longer."""
        size_bytes = max(1, size_bytes)
        status, address = driver.cuMemAlloc(size_bytes)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise classified(CUDAError(f"{size_bytes} bytes of global memory: {status.name}"))
        return Memory.from_handle(int(address), size_bytes, owner=_Allocation(int(address)))

    def region(self, buffer: Buffer, offset_bytes: int, size_bytes: int) -> Buffer:
        """The same memory from an offset on; the parent is kept alive."""
        return Memory.from_handle(int(buffer.handle) + offset_bytes, size_bytes, owner=buffer)

    def write(self, buffer: Buffer, data: Bytes) -> None:
        """Copy to the GPU and wait."""
        data = np.ascontiguousarray(data)
        if data.size:
            self._stream.sync()
            _check(driver.cuMemcpyHtoD(int(buffer.handle), data.ctypes.data, data.size))

    def read(self, buffer: Buffer, size_bytes: int) -> Bytes:
        """Wait for the stream and copy to the host."""
        data = np.empty(size_bytes, np.uint8)
        if size_bytes:
            self._stream.sync()
            _check(driver.cuMemcpyDtoH(data.ctypes.data, int(buffer.handle), size_bytes))
        return data

    def copy(self, target: Buffer, source: Buffer, size_bytes: int) -> None:
        """Copy within global memory, in the order of the stream."""
        _check(driver.cuMemcpyDtoDAsync(int(target.handle), int(source.handle), size_bytes, self.stream))

    def fill(self, buffer: Buffer, byte: int, size_bytes: int) -> None:
        """Set every byte, in the order of the stream."""
        _check(driver.cuMemsetD8Async(int(buffer.handle), byte, size_bytes, self.stream))

    def load(self, binary: Binary) -> Program:
        """Load a cubin; its kernels are looked up by name when they are launched."""
        return Module(binary, self._index)

    def enqueue(self, program: Program, step: Launch, arguments: Mapping[str, Buffer | np.generic]) -> None:
        """Queue one launch on the device's stream."""
        kernel = program.kernel(step.entry, step.shared_bytes)
        config = LaunchConfig(grid=step.grid, block=step.block, shmem_size=step.shared_bytes)
        launch(self._stream, config, kernel, *(arguments[name] for name in step.arguments))

    def start_clock(self) -> None:
        """Note the time at which the GPU gets here."""
        self._stream.record(self._start)

    def stop_clock(self) -> float:
        """Wait for what was queued; the time since `start_clock` in ms."""
        self._stream.record(self._end)
        self._end.sync()
        return float(self._end - self._start)


class _Allocation:
    """Global memory that is given back when nobody holds it any more."""

    def __init__(self, address: int) -> None:
        self._address = address

    def __del__(self) -> None:
        driver.cuMemFree(self._address)


class Module:
    """A loaded cubin and the kernels that were asked for."""

    def __init__(self, binary: Binary, index: int) -> None:
        self._index = index
        self._code = ObjectCode.from_cubin(binary.data)
        self._kernels: dict[tuple[str, int], Kernel] = {}

    def kernel(self, entry: str, shared_bytes: int) -> Kernel:
        """A kernel by name, allowed as much dynamic shared memory as the launch wants."""
        key = (entry, shared_bytes)
        if key not in self._kernels:
            try:
                kernel = self._code.get_kernel(entry)
            except CUDAError as error:
                raise LaunchError(
                    f'no kernel {entry!r} in the binary; is it declared extern "C"? ({error})'
                ) from None
            if shared_bytes:  # with what the kernel declares itself it may be more than 48 KiB
                opt_in = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                (result,) = driver.cuKernelSetAttribute(opt_in, shared_bytes, kernel.handle, self._index)
                if result != driver.CUresult.CUDA_SUCCESS:
                    raise LaunchError(
                        f"{entry}: {shared_bytes} bytes of dynamic shared memory: {result.name}"
                    )
            self._kernels[key] = kernel
        return self._kernels[key]


def list_devices() -> list[DeviceInfo]:
    """Every GPU that the driver shows; none without a driver."""
    try:
        return [cuda_device(gpu.device_id) for gpu in Gpu.get_all_devices()]
    except (CUDAError, RuntimeError):  # a driver that refuses, or none at all
        return []


def open_device(index: int) -> CudaDevice:
    """Open the GPU of that number."""
    return CudaDevice(index)


def open_compiler(index: int) -> CudaCompiler:
    """NVRTC for that GPU's architecture."""
    return CudaCompiler(cuda_device(index).architecture)


def _check(answer: tuple[object, ...]) -> None:
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise DeviceLost(str(answer[0]))
