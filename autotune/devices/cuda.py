"""NVIDIA GPUs through cuda.core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from cuda.bindings import driver
from cuda.core import Device as Gpu
from cuda.core import EventOptions, Kernel, LaunchConfig, ObjectCode, launch
from cuda.core._utils.cuda_utils import CUDAError  # cuda.core exports its error class nowhere else

from autotune.compilers.nvrtc import CudaCompiler
from autotune.core.records import DeviceInfo, Launch
from autotune.core.trials import Binary
from autotune.devices.base import Arguments, Program
from autotune.devices.cuda_common import CudaDeviceBase, packed
from autotune.devices.nvml import NvmlMonitor
from autotune.errors import LaunchError
from autotune.hardware.cuda_driver import cuda_device


class CudaDevice(CudaDeviceBase):
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

    def load(self, binary: Binary) -> Program:
        """Load a cubin; its kernels are looked up at their first launch."""
        return Module(binary, self._index)

    def prepared(self, program: Program, step: Launch, arguments: Arguments) -> Callable[[], object]:
        """Return a function that queues the launch on the device's stream."""
        kernel = program.kernel(step.entry, step.shared_bytes)
        config = LaunchConfig(grid=step.grid, block=step.block, shmem_size=step.shared_bytes)
        return partial(launch, self._stream, config, kernel, *packed(step, arguments))

    def start_clock(self) -> None:
        """Record the start event."""
        self._stream.record(self._start)

    def stop_clock(self) -> float:
        """Record the end event and wait for it; return the time since `start_clock` in ms."""
        self._stream.record(self._end)
        self._end.sync()
        return float(self._end - self._start)


class Module:
    """A loaded cubin and the kernels that were looked up in it."""

    def __init__(self, binary: Binary, index: int) -> None:
        self._index = index
        self._binary = binary
        self._code = ObjectCode.from_cubin(binary.data)
        self._kernels: dict[tuple[str, int], Kernel] = {}

    def kernel(self, entry: str, shared_bytes: int) -> Kernel:
        """Look up a kernel and allow it the dynamic shared memory of the launch."""
        key = (entry, shared_bytes)
        if key not in self._kernels:
            try:
                kernel = self._code.get_kernel(self._binary.symbol(entry))
            except CUDAError as error:
                raise LaunchError(f"no kernel {entry!r} in the binary ({error})") from None
            if shared_bytes:  # with the static shared memory this may exceed 48 KiB
                opt_in = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                (result,) = driver.cuKernelSetAttribute(opt_in, shared_bytes, kernel.handle, self._index)
                if result != driver.CUresult.CUDA_SUCCESS:
                    raise LaunchError(
                        f"{entry}: {shared_bytes} bytes of dynamic shared memory: {result.name}"
                    )
            self._kernels[key] = kernel
        return self._kernels[key]

    def variable(self, name: str) -> tuple[int, int]:
        """Address and size in bytes of a variable; raises LaunchError."""
        symbol = self._binary.symbol(name).encode()
        result, address, size_bytes = driver.cuLibraryGetGlobal(self._code.handle, symbol)
        if result != driver.CUresult.CUDA_SUCCESS:
            raise LaunchError(f"no variable {name!r} in the binary: {result.name}")
        return int(address), int(size_bytes)


def list_devices() -> list[DeviceInfo]:
    """List the GPUs that the driver shows; none without a driver."""
    try:
        gpus = Gpu.get_all_devices()
        return [
            replace(cuda_device(gpu.device_id), limits=NvmlMonitor(gpu.pci_bus_id).limits()) for gpu in gpus
        ]
    except (CUDAError, RuntimeError):  # a driver that refuses, or none at all
        return []


def open_device(index: int) -> CudaDevice:
    """Open the GPU with this number."""
    return CudaDevice(index)


def open_compiler(index: int) -> CudaCompiler:
    """Open NVRTC for that GPU's architecture."""
    return CudaCompiler(cuda_device(index).architecture)
