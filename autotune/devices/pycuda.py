"""NVIDIA GPUs through PyCUDA; the compiler is the same as for cuda.core."""

from __future__ import annotations

import atexit
from dataclasses import replace

import pycuda.driver as driver

from autotune.compilers.nvrtc import CudaCompiler
from autotune.core.records import DeviceInfo
from autotune.devices.cuda_common import CudaDeviceBase
from autotune.devices.nvidia_gpus import list_gpus
from autotune.hardware.cuda_driver import cuda_device


class PyCudaDevice(CudaDeviceBase):
    """One GPU, its primary context and a stream of its own."""

    driver_error = driver.Error

    def __init__(self, index: int) -> None:
        gpu = driver.Device(index)
        super().__init__(_describe(index), index, gpu.pci_bus_id())
        self._context = gpu.retain_primary_context()  # that of other packages
        self._context.push()
        atexit.register(self._context.pop)  # PyCUDA aborts if a context outlives the interpreter
        self._stream = driver.Stream()
        self.stream = self._stream.handle
        self._start, self._end = driver.Event(), driver.Event()

    def start_clock(self) -> None:
        """Record the start event."""
        self._start.record(self._stream)

    def stop_clock(self) -> float:
        """Record the end event and wait for it; return the time since `start_clock` in ms."""
        self._end.record(self._stream)
        self._end.synchronize()
        return float(self._end.time_since(self._start))


def list_devices() -> list[DeviceInfo]:
    """List the GPUs that the driver shows; none without a driver."""
    return list_gpus("pycuda")


def open_device(index: int) -> PyCudaDevice:
    """Open the GPU with this number."""
    driver.init()
    return PyCudaDevice(index)


def open_compiler(index: int) -> CudaCompiler:
    """Open NVRTC for that GPU's architecture."""
    return CudaCompiler(_describe(index).architecture)


def _describe(index: int) -> DeviceInfo:
    return replace(cuda_device(index), backend="pycuda")
