"""What a device adapter provides. Adapters move bytes and launch kernels; they decide nothing.

A backend is one module of this package with the three functions of `Backend`. Everything here runs in
a child process: a compiler in the pool's processes, a device in the worker's one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.compilers.base import Compiler
from autotune.core.records import DeviceInfo, Launch, Value
from autotune.core.trials import Binary
from autotune.devices.array_compare import ArrayComparison, Difference, compared_on_host

Bytes = NDArray[np.uint8]
Buffer = Any  # a backend's own handle to a range of device memory
Program = Any  # a backend's own handle to a loaded binary


class HostComparisonMixin:
    """Mix-in for devices whose memory is best compared on the host, and that tell nothing of themselves."""

    read: Callable[[Buffer, int], Bytes]

    def compare(self, comparisons: Sequence[ArrayComparison]) -> list[Difference | None]:
        """Bring the arrays back and compare them."""
        return [self._difference(comparison) for comparison in comparisons]

    def forget(self) -> None:
        """Runs leave nothing behind."""

    def conditions(self) -> Mapping[str, Value]:
        """Nothing is known."""
        return {}

    def energy_j(self) -> float | None:
        """No counter."""
        return None

    def _difference(self, wanted: ArrayComparison) -> Difference | None:
        size_bytes = wanted.count * np.dtype(wanted.dtype).itemsize
        buffers = (wanted.actual, wanted.expected)
        actual, expected = (self.read(buffer, size_bytes).view(wanted.dtype) for buffer in buffers)
        return compared_on_host(actual, expected, wanted)


class Device(Protocol):
    """One device, opened in this process."""

    info: DeviceInfo

    def allocate(self, size_bytes: int) -> Buffer:
        """Reserve device memory; the address is aligned for every vector type.

        It is free again when nobody holds the buffer any more. Raises OutOfMemory.
        """
        ...

    def region(self, buffer: Buffer, offset_bytes: int, size_bytes: int) -> Buffer:
        """A part of a buffer that can be passed where a buffer is expected; offset a multiple of 4096."""
        ...

    def write(self, buffer: Buffer, data: Bytes) -> None:
        """Copy host bytes to the start of a buffer."""
        ...

    def read(self, buffer: Buffer, size_bytes: int) -> Bytes:
        """Copy the first bytes of a buffer to the host."""
        ...

    def copy(
        self,
        target: Buffer,
        source: Buffer,
        size_bytes: int,
        target_offset: int = 0,
        source_offset: int = 0,
    ) -> None:
        """Copy within device memory, from and to so many bytes after the starts of two buffers."""
        ...

    def compare(self, comparisons: Sequence[ArrayComparison]) -> list[Difference | None]:
        """Compare arrays in device memory by the rule of `comparison`; None for those that agree."""
        ...

    def load(self, binary: Binary) -> Program:
        """Make a binary launchable; raises LaunchError."""
        ...

    def run(
        self,
        program: Program,
        launches: Sequence[Launch],
        arguments: Mapping[str, Buffer | np.generic],
        repeats: int = 1,
    ) -> float:
        """Run the plan `repeats` times in order, wait for it, and return the device time of it all in ms.

        Raises LaunchError when the device refuses a launch and stays usable, DeviceLost otherwise.
        """
        ...

    def forget(self) -> None:
        """Hold no buffer of an earlier run, so that its memory is free once the caller drops it."""
        ...

    def flush_cache(self) -> None:
        """Replace the contents of the last-level cache, so that the next run reads memory."""
        ...

    def conditions(self) -> Mapping[str, Value]:
        """How the device does at the moment, as far as it tells: clocks, throttling, other users."""
        ...

    def energy_j(self) -> float | None:
        """A counter of the energy that the device uses, in joules; None where there is none."""
        ...


class Backend(Protocol):
    """What a backend's module offers."""

    def list_devices(self) -> list[DeviceInfo]:
        """Every device of this backend on this machine, in index order."""
        ...

    def open_device(self, index: int) -> Device:
        """Open one device in this process."""
        ...

    def open_compiler(self, index: int) -> Compiler:
        """A compiler for that device."""
        ...
