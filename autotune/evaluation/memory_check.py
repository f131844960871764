"""Checks that a workload's arrays fit in device and host memory, and finds sizes that fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from autotune.core.c_types import is_floating
from autotune.core.records import Sizes
from autotune.core.text import size_text
from autotune.errors import ExpressionError, NoMemory
from autotune.evaluation.buffers import device_bytes
from autotune.evaluation.instance import InstanceMaker
from autotune.problem.workload import Workload
from autotune.processes.host_limits import host_memory

_FITTING_SHARE = 0.75  # share of the memory that suggested sizes may take: other programs use some as well


class MemoryCheck:
    """Compares what the arrays of the default configuration take with the memory that there is."""

    def __init__(self, maker: InstanceMaker, default: Workload, *, is_sampled: bool) -> None:
        """Compare nothing yet; `is_sampled` says that the reference returns samples of its results."""
        self._maker, self._default, self._is_sampled = maker, default, is_sampled
        self._device, self._host = maker.space.device, host_memory()

    @contextmanager
    def enough_memory(self) -> Iterator[None]:
        """Raise NoMemory, naming sizes that fit, when the arrays take more memory than there is.

        Also raises NoMemory if an allocation on the device fails inside the block.
        """
        device, host, default = self._device, self._host, self._default
        if device_bytes(default) > device.memory_bytes:
            raise self._too_large(f"has {_gib(device.memory_bytes)}")
        needed_bytes = self._host_bytes(default)
        if host is not None and needed_bytes > host.total_bytes:
            images = (
                ", and two copies of each for this device, which is the CPU" if device.kind == "cpu" else ""
            )
            raise NoMemory(
                f"{self._arrays} take {_gib(needed_bytes)} of the host's memory (inputs, expected "
                f"results{images}), and the host has {_gib(host.total_bytes)}; {self._advice()}"
            )
        try:
            yield
        except NoMemory as error:
            reason = f"has no room for them in its {_gib(device.memory_bytes)} ({error})"
            raise self._too_large(reason) from None

    def warning(self) -> str:
        """A warning before a reference that may need more memory than is free; empty in most cases."""
        needed_bytes = self._host_bytes(self._default)
        most_bytes = needed_bytes + _float64_bytes(self._default)
        if self._host is None or most_bytes <= self._host.free_bytes:
            return ""
        return (
            f"{self._arrays} take {_gib(needed_bytes)} of the host's memory, and {_gib(most_bytes)} if the "
            f"reference computes in float64; {_gib(self._host.free_bytes)} are free. If a process is killed, "
            f"{self._advice()}"
        )

    def _host_bytes(self, workload: Workload) -> int:
        """Lower bound of the host memory that a workload's arrays take.

        It holds inputs, unless they are read from files; whole results of the reference, unless it returns
        samples; and the arrays of a CPU.
        """
        drawn = [array for array in workload.arrays if array.fill and array.fill[0] not in ("stored", "copy")]
        returned = [array for array in workload.arrays if array.role in ("out", "inout")]
        images_bytes = device_bytes(workload) if self._device.kind == "cpu" else 0
        if self._is_sampled:
            images_bytes -= sum(array.size_bytes for array in returned) if images_bytes else 0
            returned = []
        return sum(array.size_bytes for array in (*drawn, *returned)) + images_bytes

    def _too_large(self, reason: str) -> NoMemory:
        needed = _gib(device_bytes(self._default))
        return NoMemory(
            f"{self._arrays} take {needed} of device memory, and {self._device.name} {reason}; "
            f"{self._advice()}"
        )

    @property
    def _arrays(self) -> str:
        return f"{self._maker.space.spec.path}: the arrays for {size_text(self._default.problem.sizes)}"

    def _advice(self) -> str:
        smaller = self._fitting_sizes() or {}
        options = " ".join(f"--size {name}={smaller[name]}" for name in smaller)
        sizes = f", such as {options}" if options else ""
        return f"choose a smaller problem with --size{sizes}"

    def _fitting_sizes(self) -> Sizes | None:
        """Halve the largest size until the arrays fit; None if the default configuration cannot run then."""
        space, sizes = self._maker.space, dict(self._maker.space.problem.sizes)
        while max(sizes.values()) > 1:
            largest = max(sizes, key=lambda name: sizes[name])
            sizes[largest] //= 2
            try:
                workload = self._maker.workload(space.spec.default, replace(space.problem, sizes=sizes))
            except ExpressionError:
                return None
            if self._fits(workload) and space.holds(space.spec.default, sizes):
                return sizes
        return None

    def _fits(self, workload: Workload) -> bool:
        """True if a workload's arrays fit, with a margin, in both memories."""
        on_host_bytes = self._host_bytes(workload) + _float64_bytes(workload)
        return device_bytes(workload) <= _FITTING_SHARE * self._device.memory_bytes and (
            self._host is None or on_host_bytes <= _FITTING_SHARE * self._host.total_bytes
        )


def _float64_bytes(workload: Workload) -> int:
    """The memory of float64 copies of the arrays that a reference reads and returns."""
    read = [array for array in workload.arrays if array.role != "scratch"]
    return sum(8 * array.count for array in read if is_floating(array.dtype))


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
