"""What the CUDA backends share: runs, comparisons and cache flushes on the GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from autotune.compilers.binary_cache import BinaryCache, CachedCompiler, default_folder
from autotune.compilers.nvrtc import CudaCompiler
from autotune.core.c_types import element_bytes
from autotune.core.records import DeviceInfo, Launch, Value
from autotune.core.trials import Binary
from autotune.devices.array_compare import (
    KINDS,
    ArrayComparison,
    Difference,
    cuda_source,
    difference_of,
    gather_source,
    special_bits,
)
from autotune.devices.base import Arguments, Buffer, Bytes, Indices, PipelinedRun, Program, host_difference
from autotune.devices.clocks import Clocks
from autotune.devices.cuda_graph import DriverGraph
from autotune.devices.cuda_memory import CudaMemory, DriverError, classified
from autotune.devices.cuda_module import KernelLaunch, Module, SideStreams
from autotune.devices.nvml import NvmlMonitor
from autotune.errors import LaunchError

_SourceOf = Callable[[int], str]  # the source of a kernel of ours, for elements of a size
_RESULT_BYTES = 16
_MAX_COMPARISONS = 256  # launches that are kept


class CudaDeviceBase(CudaMemory):
    """Base class of the CUDA adapters.

    Runs of several launches are replayed as a graph. Arrays are compared on the GPU, and only the results are
    copied to the host. A read of a large buffer flushes the L2 cache.
    """

    driver_error: type[Exception]  # what the package raises when the driver refuses
    start_clock: Callable[[], None]
    stop_clock: Callable[[], float]  # waits; ms

    def __init__(self, info: DeviceInfo, index: int, pci_bus_id: str) -> None:
        self.info = info
        self._index = index
        self._monitor = NvmlMonitor(pci_bus_id)  # before there is a context: it counts the GPU's processes
        self.clocks = Clocks(self._monitor.control())
        self._graph_of: tuple[object, ...] | None = None
        self._graph: DriverGraph | None = None
        self._flush_ratio = 0.0  # 0: not measured yet
        self._own_programs: dict[tuple[_SourceOf, int], Program] = {}
        thread = ThreadPoolExecutor(1)  # compiles while the context is made and memory is filled
        self._compiling: dict[tuple[_SourceOf, int], Future[Binary]] = {
            (source, size): thread.submit(_compiled, info.architecture, source(size))
            for size in (4, 2, 8, 1)  # every search needs the first
            for source in (cuda_source, gather_source)
        }
        self._comparisons: dict[tuple[ArrayComparison, int], KernelLaunch] = {}
        self._gathering: tuple[Buffer, int] = (None, 0)  # memory for indices and elements, and its size
        self._results: Buffer = None
        self._max_results = 0
        self._flush: Buffer = None

    def load(self, binary: Binary) -> Program:
        """Load a cubin; its kernels are looked up at their first launch."""
        try:
            return Module(binary, self._index)
        except DriverError as error:
            raise classified(error) from None

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
            overlaps = any(step.stream for step in launches)  # only a graph runs these
            if overlaps or (len(launches) * repeats > 1 if graph is None else graph):
                queue: list[Callable[[], object]] = [
                    self._captured(program, launches, arguments, repeats).launch
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

    def run_pipelined(self, program: Program, runs: Sequence[PipelinedRun]) -> float:
        """Queue everything, each run on its stream; time it between two events of the device's stream."""
        streams = SideStreams(self.stream)
        try:
            self.start_clock()
            try:
                for one in runs:
                    stream = streams.of(one.stream)
                    for buffer, data in one.inputs:
                        self.queue_write(buffer, data, stream)
                    for step in one.launches:
                        KernelLaunch(program, step, one.arguments, stream)()
                    for buffer, data in one.results:
                        self.queue_read(buffer, data, stream)
            finally:  # copies that are queued use the host's memory, also if a launch after them is refused
                streams.join()
                time_ms = self.stop_clock()
            return time_ms
        except (self.driver_error, DriverError) as error:
            raise classified(error) from None
        finally:
            streams.close()

    def set_variable(self, program: Program, name: str, content: Buffer, size_bytes: int) -> None:
        """Copy within global memory, in the order of the stream."""
        address, room_bytes = program.variable(name)
        if size_bytes > room_bytes:
            raise LaunchError(f"{name}: the array has {size_bytes} bytes, the variable {room_bytes}")
        self.copy(address, content, size_bytes)

    def read_variable(self, program: Program, name: str) -> Bytes:
        """Copy from global memory, after all that is queued."""
        return self.read(*program.variable(name))

    def compare(self, comparisons: Sequence[ArrayComparison]) -> list[Difference | None]:
        """Compare all pairs on the GPU, then copy the results to the host; structures on the host."""
        if any(comparison.struct for comparison in comparisons):
            return [host_difference(self.read, comparison) for comparison in comparisons]
        size_bytes = _RESULT_BYTES * len(comparisons)
        self._reserve_results(len(comparisons))
        self.fill(self._results, 0xFF, size_bytes)
        for position, comparison in enumerate(comparisons):
            self._enqueue_comparison(comparison, position)
        words = self.read(self._results, size_bytes).view(np.uint64).tolist()
        return [difference_of(*pair) for pair in zip(words[::2], words[1::2], strict=True)]

    def gather(self, buffer: Buffer, indices: Indices, item_bytes: int) -> Bytes:
        """Gather the elements on the GPU, then copy them to the host in one piece.

        The indices are copied there anew, because a kernel may have written over them meanwhile.
        """
        if not indices.size:
            return np.empty(0, np.uint8)
        size_bytes = indices.size * item_bytes
        memory, room_bytes = self._gathering
        if room_bytes < indices.nbytes + size_bytes:
            room_bytes = indices.nbytes + size_bytes
            memory = self.allocate(room_bytes)
            self._gathering = memory, room_bytes
        found = self.region(memory, indices.nbytes, size_bytes)
        self.write(memory, indices.view(np.uint8))
        word_bytes = next(size for size in (8, 4, 2, 1) if item_bytes % size == 0)
        arguments = {
            "array": buffer,
            "places": memory,
            "words": np.uint64(item_bytes // word_bytes),
            "count": np.uint64(indices.size),
            "found": found,
        }
        step = Launch("gather", (-(-indices.size // 256), 1, 1), (256, 1, 1), 0, tuple(arguments))
        try:
            KernelLaunch(self._own(gather_source, word_bytes), step, arguments, self.stream)()
        except DriverError as error:
            raise classified(error) from None
        return self.read(found, size_bytes)

    def flush_cache(self) -> None:
        """Read four times the size of the L2; this also keeps the GPU busy while the next run is queued.

        Reading leaves no dirty lines. After a memset the next run would pay for writing them back.
        """
        size_bytes = 4 * self.info.cache_bytes
        if self._flush is None:
            self._flush = self.allocate(size_bytes)
            self.fill(self._flush, 0, size_bytes)
            self._reserve_results(1)
        self._enqueue_comparison(ArrayComparison(self._flush, self._flush, "uint32", size_bytes // 4), 0)

    def forget(self) -> None:
        """Drop the latest graph and the launches of comparisons, which refer to buffers."""
        self._graph = self._graph_of = None
        self._comparisons.clear()

    def conditions(self) -> Mapping[str, Value]:
        """What NVML reports, and the ratio of read times with flushed and with warm caches."""
        if not self._flush_ratio:
            self._flush_ratio = self._measure_flush()
        return self._monitor.conditions() | {"flush_ratio": round(self._flush_ratio, 2)}

    def energy_j(self) -> float | None:
        """Energy since the driver was loaded, in J; None if the GPU does not count it."""
        return self._monitor.energy_j()

    def _captured(
        self, program: Program, launches: Sequence[Launch], arguments: Arguments, repeats: int
    ) -> DriverGraph:
        streams = SideStreams(self.stream)

        def enqueue() -> None:
            for _ in range(repeats):
                for step in launches:
                    KernelLaunch(program, step, arguments, streams.of(step.stream))()
                streams.join()

        key = (program, tuple(launches), tuple(arguments.items()), repeats)
        if self._graph is None or self._graph_of != key:
            try:
                self._graph, self._graph_of = DriverGraph(self.stream, enqueue), key
            finally:
                streams.close()
        return self._graph

    def _measure_flush(self) -> float:
        """The time in which one block reads 1 MiB after a flush, divided by the time with a warm cache.

        A single block waits for every load, so the ratio shows the latency.
        """
        self.flush_cache()
        program, step, values = self._launch_of(ArrayComparison(self._flush, self._flush, "uint32", 2**18), 0)
        alone = [replace(step, grid=(1, 1, 1))]
        self.run(program, alone, values)
        warm_ms = min(self.run(program, alone, values) for _ in range(3))
        self.flush_cache()
        return self.run(program, alone, values) / warm_ms

    def _reserve_results(self, count: int) -> None:
        if count > self._max_results:
            self._results, self._max_results = self.allocate(_RESULT_BYTES * count), count
            self._comparisons.clear()

    def _enqueue_comparison(self, comparison: ArrayComparison, position: int) -> None:
        """Queue a comparison; its launch is kept, because every configuration needs the same ones."""
        key = (comparison, position)
        if key not in self._comparisons:
            if len(self._comparisons) >= _MAX_COMPARISONS:
                self._comparisons.clear()
            self._comparisons[key] = KernelLaunch(*self._launch_of(comparison, position), self.stream)
        self._comparisons[key]()

    def _launch_of(self, comparison: ArrayComparison, position: int) -> tuple[Program, Launch, Arguments]:
        result = self.region(self._results, _RESULT_BYTES * position, _RESULT_BYTES)
        gap = 0 if comparison.inside else comparison.count - 2 * comparison.ends
        magnitude = comparison.magnitude
        arguments = {
            "actual": comparison.actual,
            "expected": comparison.expected,
            "count": np.uint64(comparison.count),
            "ends": np.uint64(comparison.ends),
            "gap": np.uint64(gap),
            "special": np.uint64(special_bits(comparison.dtype)),
            "kind": np.int32(KINDS.index(comparison.dtype)),
            "rtol": np.float64(comparison.tolerance.rtol),
            "atol": np.float64(comparison.tolerance.atol),
            "magnitude": result if magnitude is None else magnitude,  # not read without factor
            "factor": np.float64(comparison.tolerance.factor),
            "result": result,
        }
        blocks = max(1, min(8 * self.info.compute_units, -(-(comparison.count - gap) // 512)))
        step = Launch("compare", (blocks, 1, 1), (512, 1, 1), 0, tuple(arguments))
        return self._own(cuda_source, element_bytes(comparison.dtype)), step, arguments

    def _own(self, source: _SourceOf, size: int) -> Program:
        """A kernel of ours for elements of a size, compiled now if its turn has not come yet."""
        if (source, size) not in self._own_programs:
            compiling = self._compiling[source, size]
            is_late = compiling.cancel()
            binary = _compiled(self.info.architecture, source(size)) if is_late else compiling.result()
            self._own_programs[source, size] = self.load(binary)
        return self._own_programs[source, size]


def _compiled(architecture: str, source: str) -> Binary:
    """A kernel of ours, which every device process needs: one compiles it for all."""
    compiler, folder = CudaCompiler(architecture), default_folder()
    if folder is None:
        return compiler.compile(source, ())
    return CachedCompiler(compiler, BinaryCache(folder)).compile(source, ())
