"""Global memory of a GPU through the driver API.

All transfers are enqueued on the device's stream. The driver's functions without a stream use the legacy
stream, which is not ordered with other streams, and may return before bytes from the host have arrived.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from autotune.cuda.driver import call
from autotune.cuda.memory import Memory
from autotune.devices.base import Buffer, Bytes, Device, Offsets
from autotune.errors import DeviceError

_TO_GPU, _TO_HOST = "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"


class _Region:
    """A part of a buffer, which keeps it alive."""

    def __init__(self, buffer: Buffer, offset_bytes: int) -> None:
        self._buffer, self._offset_bytes = buffer, offset_bytes

    def __int__(self) -> int:
        return int(self._buffer) + self._offset_bytes


class CudaMemory(Device):
    """Memory of the current context, with all transfers in stream order."""

    context: ctypes.c_void_p
    stream: ctypes.c_void_p

    def allocate(self, size_bytes: int) -> Buffer:
        """Reserve memory."""
        return Memory(self.context, size_bytes)

    def region(self, buffer: Buffer, offset_bytes: int, size_bytes: int) -> Buffer:
        """The memory from an offset on, which keeps the buffer alive."""
        return _Region(buffer, offset_bytes)

    def write(self, buffer: Buffer, data: Bytes) -> None:
        """Copy to the GPU and wait. A broadcast byte, which takes no host memory, is filled in on the GPU."""
        if data.size and data.strides == (0,):
            self.fill(buffer, int(data[0]), data.size)
            self._wait()
            return
        data = np.ascontiguousarray(data)
        if data.size:
            self._enqueue(_TO_GPU, int(buffer), data.ctypes.data, data.size)
            self._wait()

    def read(self, buffer: Buffer, size_bytes: int, into: Bytes | None = None) -> Bytes:
        """Copy to the host and wait."""
        data = np.empty(size_bytes, np.uint8) if into is None else into
        if size_bytes:
            self._enqueue(_TO_HOST, data.ctypes.data, int(buffer), size_bytes)
            self._wait()
        return data

    @contextmanager
    def pinned(self, data: Bytes) -> Iterator[None]:
        """Register the memory with the driver: copies then need no second buffer."""
        address = ctypes.c_void_p(data.ctypes.data)
        call("cuMemHostRegister_v2", address, ctypes.c_size_t(data.size), 0)
        try:
            yield
        finally:
            with suppress(DeviceError):  # the device is lost, which the copies have reported
                call("cuMemHostUnregister", address)

    def copy(self, target: Buffer, source: Buffer, size_bytes: int, offsets: Offsets = (0, 0)) -> None:
        """Copy within global memory."""
        into, out_of = int(target) + offsets[0], int(source) + offsets[1]
        self._enqueue("cuMemcpyDtoDAsync_v2", into, out_of, size_bytes)

    def fill(self, buffer: Buffer, byte: int, size_bytes: int) -> None:
        """Set every byte."""
        self._enqueue("cuMemsetD8Async", int(buffer), ctypes.c_ubyte(byte), size_bytes)

    def _enqueue(self, name: str, to: int, content: Any, size_bytes: int) -> None:
        """Enqueue on the device's stream."""
        content = ctypes.c_uint64(content) if isinstance(content, int) else content
        call(name, ctypes.c_uint64(to), content, ctypes.c_size_t(size_bytes), self.stream)

    def _wait(self) -> None:
        """Wait for the stream, because the copy uses host memory."""
        call("cuStreamSynchronize", self.stream)
