"""NVIDIA GPUs through cuda.core."""

from __future__ import annotations

from cuda.core import Device as Gpu
from cuda.core import EventOptions
from cuda.core._utils.cuda_utils import CUDAError  # cuda.core exports its error class nowhere else

from autotune.compilers.nvrtc import CudaCompiler
from autotune.core.records import DeviceInfo
from autotune.devices.cuda_common import CudaDeviceBase
from autotune.devices.nvidia_gpus import list_gpus
from autotune.hardware.cuda_driver import cuda_device


class CudaDevice(CudaDeviceBase):
    """One GPU, its primary context and a stream of its own."""

    driver_error = CUDAError

    def __init__(self, index: int) -> None:
        gpu = Gpu(index)
        super().__init__(cuda_device(index), index, gpu.pci_bus_id)
        gpu.set_current()
        self._stream = gpu.create_stream()
        self.stream = int(self._stream.handle)
        timed = EventOptions(timing_enabled=True)
        self._start, self._end = gpu.create_event(timed), gpu.create_event(timed)

    def start_clock(self) -> None:
        """Record the start event."""
        self._stream.record(self._start)

    def stop_clock(self) -> float:
        """Record the end event and wait for it; return the time since `start_clock` in ms."""
        self._stream.record(self._end)
        self._end.sync()
        return float(self._end - self._start)


def list_devices() -> list[DeviceInfo]:
    """List the GPUs that the driver shows; none without a driver."""
    return list_gpus("cuda")


def open_device(index: int) -> CudaDevice:
    """Open the GPU with this number."""
    return CudaDevice(index)


def open_compiler(index: int) -> CudaCompiler:
    """Open NVRTC for that GPU's architecture."""
    return CudaCompiler(cuda_device(index).architecture)
