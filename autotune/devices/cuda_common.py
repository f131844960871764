"""What the CUDA adapters share: runs and cache flushes on the GPU."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from weakref import WeakSet

import numpy as np

from autotune.core.records import DeviceInfo, Launch, Value
from autotune.devices.base import Arguments, Buffer, Bytes, Program
from autotune.devices.clocks import Clocks
from autotune.devices.cuda_arrays import CudaArrays
from autotune.devices.cuda_graph import DriverGraph
from autotune.devices.cuda_memory import DriverError, classified
from autotune.devices.cuda_module import KernelLaunch, Module
from autotune.devices.nvml import NvmlMonitor
from autotune.errors import LaunchError


class CudaDeviceBase(CudaArrays):
    """Base class of the CUDA adapters.

    Runs of several launches are replayed as a graph. A read of a large buffer flushes the L2 cache.
    """

    driver_error: type[Exception]  # what the package raises when the driver refuses
    start_clock: Callable[[], None]
    stop_clock: Callable[[], float]  # waits; ms

    def __init__(self, info: DeviceInfo, index: int, pci_bus_id: str) -> None:
        self._monitor = NvmlMonitor(pci_bus_id)  # before there is a context: it counts the GPU's processes
        self.clocks = Clocks(self._monitor.control())
        self._with_graphs: WeakSet[Module] = WeakSet()
        self._flush_ratio = 0.0  # 0: not measured yet
        super().__init__(info, index)
        self._flush: Buffer = None

    def run(
        self,
        program: Program,
        launches: Sequence[Launch],
        arguments: Arguments,
        repeats: int = 1,
        graph: bool | None = None,
        is_second: bool = False,
    ) -> float:
        """Time the launches between two events; all are queued before the GPU reaches them."""
        try:
            if len(launches) * repeats > 1 if graph is None else graph:
                queue: list[Callable[[], object]] = [
                    self._graph(program, launches, arguments, repeats).launch
                ]
            else:
                steps = [KernelLaunch(program, step, arguments, self.stream) for step in launches]
                queue = [*steps] * repeats
            for launch in queue if is_second else ():
                launch()
            self.start_clock()
            for launch in queue:
                launch()
            return self.stop_clock()
        except (self.driver_error, DriverError) as error:
            raise classified(error) from None

    def set_variable(self, program: Program, name: str, content: Buffer, size_bytes: int) -> None:
        """Copy within global memory, in the order of the stream."""
        address, room_bytes = program.variable(name)
        if size_bytes > room_bytes:
            raise LaunchError(f"{name}: the array has {size_bytes} bytes, the variable {room_bytes}")
        self.copy(address, content, size_bytes)

    def read_variable(self, program: Program, name: str) -> Bytes:
        """Copy from global memory, after all that is queued."""
        return self.read(*program.variable(name))

    def flush_cache(self) -> None:
        """Read four times the size of the L2; this also keeps the GPU busy while the next run is queued.

        Reading leaves no dirty lines. After a memset the next run would pay for writing them back.
        """
        size_bytes = 4 * self.info.cache_bytes
        if self._flush is None:
            self._flush = self.allocate(size_bytes)
            self.fill(self._flush, 0, size_bytes)
        self.read_on_gpu(self._flush, size_bytes)

    def forget(self) -> None:
        """Drop the launches of comparisons, which keep buffers alive, and the graphs, which take memory."""
        for program in self._with_graphs:
            program.graphs.clear()
        super().forget()

    def conditions(self) -> Mapping[str, Value]:
        """What NVML reports, and the ratio of read times with flushed and with warm caches."""
        if not self._flush_ratio:
            self._flush_ratio = self._measure_flush()
        return self._monitor.conditions() | {"flush_ratio": round(self._flush_ratio, 2)}

    def energy_j(self) -> float | None:
        """Energy since the driver was loaded, in J; None if the GPU does not count it."""
        return self._monitor.energy_j()

    def _graph(
        self, program: Module, launches: Sequence[Launch], arguments: Arguments, repeats: int
    ) -> DriverGraph:
        """The graph of these runs, which stays until the program is unloaded or `forget` is called.

        Programs take turns, and many of their runs take less time than making a graph of them.
        """
        self._with_graphs.add(program)
        key = (tuple(launches), tuple((name, _in_graph(value)) for name, value in arguments.items()), repeats)
        if key not in program.graphs:
            program.graphs[key] = self._captured(program, launches, arguments, repeats)
        return program.graphs[key]

    def _captured(
        self, program: Module, launches: Sequence[Launch], arguments: Arguments, repeats: int
    ) -> DriverGraph:
        steps = [KernelLaunch(program, step, arguments, self.stream) for step in launches]

        def enqueue() -> None:
            for launch in steps * repeats:
                launch()

        return DriverGraph(self.stream, enqueue)

    def _measure_flush(self) -> float:
        """The time in which one block reads 1 MiB after a flush, divided by the time with a warm cache.

        A single block waits for every load, so the ratio shows the latency.
        """
        self.flush_cache()
        program, step, values = self.reading(self._flush, 2**20)
        alone = [replace(step, grid=(1, 1, 1))]
        self.run(program, alone, values)
        warm_ms = min(self.run(program, alone, values) for _ in range(3))
        self.flush_cache()
        return self.run(program, alone, values) / warm_ms


def _in_graph(value: Buffer | np.generic) -> Hashable:
    """What a graph holds of an argument: an address, or the bytes of a scalar."""
    return value.tobytes() if isinstance(value, np.generic) else int(value)
