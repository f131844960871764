"""NVIDIA GPUs through the driver: timed runs and cache flushes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from autotune.compilers.nvrtc import CudaCompiler
from autotune.core.records import DeviceInfo, Launch, Value
from autotune.cuda.driver import call, primary_context
from autotune.cuda.graph import Graph
from autotune.cuda.module import Module
from autotune.cuda.streams import Event, Stream
from autotune.devices.base import Arguments, Buffer, Bytes, Program
from autotune.devices.clocks import Clocks
from autotune.devices.cuda_arrays import CudaArrays
from autotune.devices.nvml import NvmlMonitor, list_gpus
from autotune.hardware.cuda_driver import cuda_device, pci_address


class CudaDevice(CudaArrays):
    """A GPU, its primary context, and a stream.

    Runs of several launches are replayed as a graph. A read of a large buffer flushes the L2 cache.
    """

    def __init__(self, info: DeviceInfo, index: int) -> None:
        # Before a context is made: the monitor counts the GPU's other processes.
        self._monitor = NvmlMonitor(pci_address(index))
        self.clocks = Clocks(self._monitor.control())
        # A program's graphs end before the program is unloaded: of its weak references, the latest is called
        # first.
        self._graphs: WeakKeyDictionary[Module, dict[Hashable, Graph]] = WeakKeyDictionary()
        self._flush_ratio = 0.0  # 0: not measured yet
        self._flush: Buffer = None
        super().__init__(info)
        self.context = self._enter(index)
        self._stream = Stream(self.context)
        self.stream = self._stream.handle
        self._start, self._end = (Event(self.context) for _ in range(2))

    def _enter(self, index: int) -> ctypes.c_void_p:
        """Make the primary context of a GPU current, and return it."""
        context = primary_context(index)
        call("cuCtxSetCurrent", context)
        return context

    def run(
        self,
        program: Program,
        launches: Sequence[Launch],
        arguments: Arguments,
        repeats: int = 1,
        graph: bool | None = None,
        warm_first: bool = False,
    ) -> float:
        """Time the launches between two events; all are enqueued before the GPU reaches them."""
        if len(launches) * repeats > 1 if graph is None else graph:
            captured = self._graph(program, launches, arguments, repeats)
            calls: list[Callable[[], object]] = [partial(captured.launch, self.stream)]
        else:
            steps = [self.launch(program, step, arguments) for step in launches]
            calls = [*steps] * repeats
        for launch in calls if warm_first else ():
            launch()
        self._start.record(self.stream)
        for launch in calls:
            launch()
        return self._stop_clock()

    def set_variable(self, program: Program, name: str, content: Buffer, size_bytes: int) -> None:
        """Copy within global memory, in stream order."""
        address, _ = program.variable(name, size_bytes)
        self.copy(address, content, size_bytes)

    def read_variable(self, program: Program, name: str) -> Bytes:
        """Copy from global memory, after all enqueued work."""
        return self.read(*program.variable(name))

    def flush_cache(self) -> None:
        """Read four times the size of the L2, which also keeps the GPU busy while the next run is enqueued.

        Reading leaves no dirty lines. After a memset, the next run would pay for the write-back.
        """
        size_bytes = 4 * self.info.cache_bytes
        if self._flush is None:
            self._flush = self.allocate(size_bytes)
            self.fill(self._flush, 0, size_bytes)
        self.read_on_gpu(self._flush, size_bytes)

    def forget(self) -> None:
        """Drop the launches of comparisons, which keep buffers alive, and the graphs, which take memory."""
        self._graphs.clear()
        super().forget()

    def conditions(self) -> Mapping[str, Value]:
        """Readings of NVML, and the ratio of read times with flushed and with warm caches."""
        if not self._flush_ratio:
            self._flush_ratio = self._measure_flush()
        return self._monitor.conditions() | {"flush_ratio": round(self._flush_ratio, 2)}

    def energy_j(self) -> float | None:
        """Energy since the driver was loaded, in J; None if the GPU does not count it."""
        return self._monitor.energy_j()

    def _graph(
        self, program: Module, launches: Sequence[Launch], arguments: Arguments, repeats: int
    ) -> Graph:
        """The graph of these runs, which stays until the program is unloaded or `forget` is called.

        It stays because programs take turns, and making a graph takes longer than many runs of it.
        """

        def enqueue(stream: ctypes.c_void_p) -> None:
            for launch in [self.launch(program, step, arguments, stream) for step in launches] * repeats:
                launch()

        graphs = self._graphs.setdefault(program, {})
        key = (tuple(launches), tuple((name, _in_graph(value)) for name, value in arguments.items()), repeats)
        if key not in graphs:
            graphs[key] = Graph(self.context, enqueue)
            graphs[key].upload(self.stream)
        return graphs[key]

    def _stop_clock(self) -> float:
        """Enqueue the end event and wait for it; return the time since the start event in ms."""
        self._end.record(self.stream)
        return self._end.ms_since(self._start)

    def _measure_flush(self) -> float:
        """The time in which one block reads 1 MiB after a flush, divided by the time with a warm cache.

        A single block waits for every load, so the ratio shows latencies.
        """
        self.flush_cache()
        program, step, values = self.reading(self._flush, 2**20)
        alone = [replace(step, grid=(1, 1, 1))]
        self.run(program, alone, values)
        warm_ms = min(self.run(program, alone, values) for _ in range(3))
        self.flush_cache()
        return self.run(program, alone, values) / warm_ms


def list_devices() -> list[DeviceInfo]:
    """List the GPUs that the driver shows; none without a driver."""
    return list_gpus("cuda")


def open_device(index: int) -> CudaDevice:
    """Open the GPU with this number."""
    return CudaDevice(cuda_device(index), index)


def open_compiler(index: int) -> CudaCompiler:
    """Open NVRTC for that GPU's architecture."""
    return CudaCompiler(cuda_device(index).architecture)


def _in_graph(value: Buffer | np.generic) -> Hashable:
    """An argument as a graph holds it: an address, or the bytes of a scalar."""
    return value.tobytes() if isinstance(value, np.generic) else int(value)
