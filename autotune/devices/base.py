"""The interface of device adapters. Adapters move bytes and launch kernels; they decide nothing.

A backend is a module with the three functions of `Backend`. Adapters run in child processes: compilers in the
compiler pool, the device in the device process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.compilers.base import Compiler
from autotune.core.records import DeviceInfo, Launch, Value
from autotune.core.trials import Binary
from autotune.devices.array_compare import ArrayComparison, Difference, compared_on_host
from autotune.devices.clocks import Clocks
from autotune.devices.element_types import numpy_dtype
from autotune.errors import LaunchError

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]
Buffer = Any  # a backend's own handle to a range of device memory
Program = Any  # a backend's own handle to a loaded binary
Offsets = tuple[int, int]  # offsets in bytes into a target and a source
DIRTY = 0x7B7B7B7B  # as numbers of every type large and finite: a product with 0 is still 0


@dataclass(frozen=True)
class LocalMemory:
    """An argument of OpenCL that gives each block local memory."""

    size_bytes: int


Arguments = Mapping[str, Buffer | np.generic | LocalMemory]  # of a launch, by name


def host_difference(read: Callable[[Buffer, int], Bytes], comparison: ArrayComparison) -> Difference | None:
    """Copy two arrays to the host and compare them there."""
    dtype = numpy_dtype(comparison.dtype)
    buffers = (comparison.actual, comparison.expected)
    actual, expected = (read(buffer, comparison.count * dtype.itemsize).view(dtype) for buffer in buffers)
    magnitude = None
    if comparison.tolerance.factor and comparison.inside:
        count = comparison.count - 2 * comparison.ends
        magnitude = read(comparison.magnitude, 4 * count).view(np.float32)
    return compared_on_host(actual, expected, comparison, magnitude)


class Device(Protocol):
    """One device, opened in this process.

    The methods with a body suit a device without variables and sensors, which compares on the host.
    """

    info: DeviceInfo
    clocks: Clocks = Clocks()  # without a control: the backend cannot change clocks

    def allocate(self, size_bytes: int) -> Buffer:
        """Reserve device memory, aligned for every vector type; raises OutOfMemory.

        The memory is freed when the buffer is no longer referenced.
        """

    def region(self, buffer: Buffer, offset_bytes: int, size_bytes: int) -> Buffer:
        """A part of a buffer, usable as a buffer. Some devices need offsets aligned to up to 4096 bytes."""

    def address(self, buffer: Buffer) -> int:
        """Where a buffer begins, as a kernel's pointer has it."""
        return int(buffer)

    def write(self, buffer: Buffer, data: Bytes) -> None:
        """Copy host bytes to the start of a buffer."""

    def read(self, buffer: Buffer, size_bytes: int, into: Bytes | None = None) -> Bytes:
        """Copy the first bytes of a buffer to the host, into a new array or the given array."""

    def pinned(self, data: Bytes) -> AbstractContextManager[None]:
        """Pin host memory while the context manager is open, if that makes copies faster."""
        return nullcontext()

    def copy(self, target: Buffer, source: Buffer, size_bytes: int, offsets: Offsets = (0, 0)) -> None:
        """Copy within device memory, from and to these offsets."""

    def compare(self, comparisons: Sequence[ArrayComparison]) -> list[Difference | None]:
        """Compare arrays in device memory by the rule of `array_compare`; None for arrays that agree."""
        return [host_difference(self.read, comparison) for comparison in comparisons]

    def gather(self, buffer: Buffer, indices: Indices, item_bytes: int) -> Bytes:
        """Copy the elements of a buffer at these indices to the host, one after the other."""
        content = self.read(buffer, (int(indices.max(initial=-1)) + 1) * item_bytes)
        return content.reshape(-1, item_bytes)[indices].reshape(-1)

    def load(self, binary: Binary) -> Program:
        """Make a binary launchable; raises LaunchError."""

    def set_variable(self, program: Program, name: str, content: Buffer, size_bytes: int) -> None:
        """Copy the start of a buffer to a variable of a program, in order with its launches.

        Raises LaunchError when there is no such variable, or it is too small.
        """
        raise LaunchError(f"{name}: only CUDA has variables that the host can write")

    def read_variable(self, program: Program, name: str) -> Bytes:
        """The content of a variable of a program after its launches; raises LaunchError without it."""
        raise LaunchError(f"{name}: only CUDA has variables that the host can read")

    def run(
        self,
        program: Program,
        launches: Sequence[Launch],
        arguments: Arguments,
        repeats: int = 1,
        graph: bool | None = None,
        warm_first: bool = False,
    ) -> float:
        """Run the launches in order, `repeats` times; wait, and return the device time of all in ms.

        `graph` is True to replay the launches as a CUDA graph; with None the device chooses. A device without
        graphs ignores it. If `warm_first`, the same launches run once before the timed launches, so that
        caches are warm and the device is busy.

        Raises LaunchError when the device refuses a launch and stays usable, DeviceLost otherwise.
        """

    def forget(self) -> None:
        """Drop references to buffers of earlier runs: the caller can then free their memory."""
        return

    def dirty_block_memory(self) -> None:
        """Leave DIRTY in the memory of blocks and threads, where a kernel may read before it writes."""
        return

    def flush_cache(self) -> None:
        """Replace the contents of the last-level cache: the next run reads from memory."""

    def conditions(self) -> Mapping[str, Value]:
        """Present conditions that may affect times, as far as known: clocks, throttling, other processes."""
        return {}

    def energy_j(self) -> float | None:
        """The reading of the device's energy counter in J, for differences only; None without a counter."""
        return None


class Backend(Protocol):
    """The functions of a backend's module."""

    def list_devices(self) -> list[DeviceInfo]:
        """Every device of this backend on this machine, in index order."""

    def open_device(self, index: int) -> Device:
        """Open one device in this process."""

    def open_compiler(self, index: int) -> Compiler:
        """A compiler for that device."""
