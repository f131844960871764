"""What a device adapter provides. Adapters move bytes and launch kernels; they decide nothing.

A backend is one module of this package with the three functions of `Backend`. Everything here runs in
a child process: a compiler in the pool's processes, a device in the worker's one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.devices.comparison import Comparison, Difference, compared_on_host
from autotune.model import DeviceInfo, Launch, Value
from autotune.trials import Binary

Bytes = NDArray[np.uint8]
Buffer = Any  # a backend's own handle to a range of device memory
Program = Any  # a backend's own handle to a loaded binary


def driver_compiler(device: DeviceInfo) -> str:
    """What results call the compiler of a driver that brings its own, as OpenCL's do."""
    return f"{device.runtime}, driver {device.driver}"


class CompileError(Exception):
    """The compiler refused the source; the text is its log."""


class LaunchError(Exception):
    """The device refused the binary or the launch and remains usable."""


class OutOfMemory(LaunchError):
    """The device has no memory left for what was asked."""


class DeviceLost(Exception):
    """The device reported an error that outlives the launch: the process must be replaced."""


class Compiler(Protocol):
    """Source text to binary, without touching device memory.

    `identity` is all that decides a binary besides source and options: the compiler, its version, what it
    compiles for. None: its binaries must not be kept.
    """

    @property
    def identity(self) -> str | None: ...  # noqa: D102 - above

    def compile(self, source: str, options: Sequence[str]) -> Binary:
        """Compile for the compiler's device; raises CompileError with the log."""
        ...


class HostCompared:
    """Mix-in for devices whose memory is best compared on the host, and that tell nothing of themselves."""

    read: Callable[[Buffer, int], Bytes]

    def compare(self, comparisons: Sequence[Comparison]) -> list[Difference | None]:
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

    def _difference(self, wanted: Comparison) -> Difference | None:
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

    def copy(self, target: Buffer, source: Buffer, size_bytes: int) -> None:
        """Copy within device memory."""
        ...

    def compare(self, comparisons: Sequence[Comparison]) -> list[Difference | None]:
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
