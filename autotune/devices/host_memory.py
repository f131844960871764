"""Memory of devices whose kernels run in this process: arrays of numpy."""

from __future__ import annotations

import numpy as np

from autotune.devices.base import Buffer, Bytes, Device, Offsets


class HostBuffers(Device):
    """A device's methods for memory."""

    def allocate(self, size_bytes: int) -> Buffer:
        """A fresh array of bytes."""
        return np.zeros(size_bytes, np.uint8)

    def region(self, buffer: Buffer, offset_bytes: int, size_bytes: int) -> Buffer:
        """A view whose `.base` is the whole allocation."""
        return buffer[offset_bytes : offset_bytes + size_bytes]

    def address(self, buffer: Buffer) -> int:
        """The address of the array's first byte."""
        return int(buffer.ctypes.data)

    def write(self, buffer: Buffer, data: Bytes) -> None:
        """Copy into the array."""
        buffer[: data.size] = data

    def read(self, buffer: Buffer, size_bytes: int, into: Bytes | None = None) -> Bytes:
        """Copy out of the array."""
        data = np.empty(size_bytes, np.uint8) if into is None else into
        data[:] = buffer[:size_bytes]
        return data

    def copy(self, target: Buffer, source: Buffer, size_bytes: int, offsets: Offsets = (0, 0)) -> None:
        """Copy between arrays."""
        into, out_of = (slice(offset, offset + size_bytes) for offset in offsets)
        target[into] = source[out_of]

    def flush_cache(self) -> None:
        """Do nothing: there is no cache."""
