"""NVIDIA GPUs in a context that PyCUDA opens; otherwise as `cuda`."""

from __future__ import annotations

import atexit
import ctypes
from dataclasses import replace

import pycuda.driver

from autotune.core.records import DeviceInfo
from autotune.cuda.driver import primary_context
from autotune.devices.cuda import CudaDevice, open_compiler
from autotune.devices.nvml import list_gpus
from autotune.hardware.cuda_driver import cuda_device

__all__ = ["list_devices", "open_compiler", "open_device"]


class PyCudaDevice(CudaDevice):
    """One GPU, whose primary context PyCUDA makes current."""

    def _enter(self, index: int) -> ctypes.c_void_p:
        context = pycuda.driver.Device(index).retain_primary_context()
        context.push()
        atexit.register(context.pop)  # PyCUDA aborts if a context outlives the interpreter
        return primary_context(index)


def list_devices() -> list[DeviceInfo]:
    """List the GPUs that the driver shows; none without a driver."""
    return list_gpus("pycuda")


def open_device(index: int) -> PyCudaDevice:
    """Open the GPU with this number."""
    pycuda.driver.init()
    return PyCudaDevice(replace(cuda_device(index), backend="pycuda"), index)
