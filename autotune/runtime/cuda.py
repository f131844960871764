"""Launches on arrays with the CUDA array interface (cupy, torch, pycuda, numba) and buffers of cuda.core."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from cuda.bindings import driver
from cuda.core import Buffer, Device

from autotune.compilers.base import cuda_compiler
from autotune.core.records import Launch
from autotune.devices.cuda_memory import DriverError
from autotune.devices.cuda_module import KernelLaunch, Module
from autotune.errors import InputError, LaunchError
from autotune.hardware.cuda_driver import cuda_device
from autotune.runtime.launchers import View

_LEGACY = 1  # the driver's and the array interface's number of the default stream; 0 may be another


class CudaLauncher:
    """One stream of one GPU, in the current context."""

    dialect = "cuda"

    def __init__(self, number: int, stream: int) -> None:
        self.device = cuda_device(number)
        self.place = number
        self._stream_handle = stream or _LEGACY
        self._scratch: list[int] = []

    def compiler(self, kind: str) -> str:
        """The name and version of NVRTC or nvcc."""
        return cuda_compiler(self.device.architecture, kind).name

    def view(self, array: Any) -> View:
        """View a contiguous array or a buffer of cuda.core."""
        if isinstance(array, Buffer):
            return View(array, None, None, array.size)
        interface = array.__cuda_array_interface__
        shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
        size_bytes = prod(shape) * dtype.itemsize
        if interface.get("strides") not in (None, _strides(shape, dtype.itemsize)):
            raise ValueError("is not contiguous")
        if interface.get("mask") is not None:
            raise ValueError("has a mask")
        handle = Buffer.from_handle(interface["data"][0], size_bytes, owner=array)
        return View(handle, dtype.name, shape, size_bytes)

    def compile(self, source: str, options: Sequence[str], kind: str, names: Sequence[str]) -> Module:
        """Compile for the GPU's architecture; raises SetupError if nvcc is needed and not installed."""
        compiler = cuda_compiler(self.device.architecture, kind)
        binary = compiler.compile(source, options, names)
        try:
            return Module(binary, self.place)
        except DriverError as error:
            raise LaunchError(str(error)) from None

    def scratch(self, size_bytes: int) -> Buffer:
        """Allocate memory in stream order, from the GPU's pool."""
        result, pointer = driver.cuMemAllocAsync(max(1, size_bytes), self._stream_handle)
        if result != driver.CUresult.CUDA_SUCCESS:
            raise LaunchError(f"{size_bytes} bytes of scratch memory: {result.name}")
        self._scratch.append(pointer)
        return Buffer.from_handle(int(pointer), size_bytes)

    def set_variable(self, program: Module, name: str, content: Buffer, size_bytes: int) -> None:
        """Copy within global memory, in the order of the stream."""
        address, room_bytes = program.variable(name)
        if size_bytes > room_bytes:
            raise LaunchError(f"{name}: the array has {size_bytes} bytes, the variable {room_bytes}")
        source = int(content.handle)
        (result,) = driver.cuMemcpyDtoDAsync(address, source, size_bytes, self._stream_handle)
        if result != driver.CUresult.CUDA_SUCCESS:
            raise LaunchError(f"{name}: {result.name}")

    def launch(self, program: Module, step: Launch, arguments: Mapping[str, Any]) -> None:
        """Queue one launch on the stream."""
        values = [arguments[name] for name in step.arguments]
        passed = [int(value.handle) if isinstance(value, Buffer) else value for value in values]
        try:
            KernelLaunch(program, step, passed, self._stream_handle)()
        except DriverError as error:
            raise LaunchError(f"{step.entry}: {error}") from None

    def finish(self) -> None:
        """Free the scratch memory in stream order, without waiting."""
        while self._scratch:
            driver.cuMemFreeAsync(self._scratch.pop(), self._stream_handle)


def open_launcher(arrays: Sequence[Any], stream: Any) -> CudaLauncher:
    """Open the GPU of the first array, on the given stream, else the array's own.

    Raises InputError if another GPU is current.
    """
    number = _gpu_of(_pointer(arrays[0]))
    result, current = driver.cuCtxGetDevice()
    if result != driver.CUresult.CUDA_SUCCESS:
        Device(number).set_current()
    elif int(current) != number:
        raise InputError(
            f"the arrays are on GPU {number} and GPU {int(current)} is current; make theirs current"
        )
    return CudaLauncher(number, _own_stream(arrays[0]) if stream is None else _handle(stream))


def _pointer(array: Any) -> int:
    return int(array.handle) if isinstance(array, Buffer) else int(array.__cuda_array_interface__["data"][0])


def _gpu_of(pointer: int) -> int:
    attribute = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    result, number = driver.cuPointerGetAttribute(attribute, pointer)
    if result != driver.CUresult.CUDA_SUCCESS:
        raise InputError(f"the first array is not in a GPU's memory: {result.name}")
    return int(number)


def _own_stream(array: Any) -> int:
    """The stream that an array belongs to: torch's current one, else that of its array interface."""
    if type(array).__module__.partition(".")[0] == "torch":
        return int(sys.modules["torch"].cuda.current_stream(array.device).cuda_stream)
    return int(getattr(array, "__cuda_array_interface__", {}).get("stream") or 0)


def _handle(stream: Any) -> int:
    """The driver's handle of a stream: a number, or an object of cuda.core, cupy, torch or pycuda."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        found = stream.__cuda_stream__
        return int((found() if callable(found) else found)[1])
    for name in ("ptr", "cuda_stream", "handle"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise InputError(f"stream {stream!r}: expected a stream of cuda.core, cupy, torch or pycuda")


def _strides(shape: Sequence[int], item_bytes: int) -> tuple[int, ...]:
    return tuple(item_bytes * prod(shape[place + 1 :]) for place in range(len(shape)))
