"""What the CUDA backends share: runs, comparing and flushing on the GPU, and how errors are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from autotune.compilers.nvrtc import CudaCompiler
from autotune.core.records import DeviceInfo, Launch, Value
from autotune.core.trials import Binary
from autotune.devices.array_compare import (
    KINDS,
    ArrayComparison,
    Difference,
    cuda_source,
    difference_of,
    special_bits,
)
from autotune.devices.base import Buffer, Program
from autotune.devices.cuda_graph import DriverGraph
from autotune.devices.cuda_memory import CudaMemory, DriverError, classified
from autotune.devices.nvml import NvmlMonitor

_COMPARE_ARGUMENTS = (
    "actual",
    "expected",
    "count",
    "ends",
    "gap",
    "special",
    "kind",
    "rtol",
    "atol",
    "result",
)
_RESULT_BYTES = 16


class CudaDeviceBase(CudaMemory):
    """Mix-in for GPUs.

    Runs of several launches are replayed as a graph. Arrays are compared in place and only the verdicts
    travel. Reading flushes the L2.
    """

    driver_error: type[Exception]  # what the package raises when the driver refuses
    load: Callable[[Binary], Program]
    # makes a launch that is queued when it is called, so that no work of the host is timed
    prepared: Callable[[Program, Launch, Mapping[str, Buffer | np.generic]], Callable[[], object]]
    start_clock: Callable[[], None]
    stop_clock: Callable[[], float]  # waits; ms

    def __init__(self, info: DeviceInfo, pci_bus_id: str) -> None:
        self.info = info
        self._gauge = NvmlMonitor(pci_bus_id)  # before there is a context, for it counts the GPU's processes
        self._graph_of: tuple[object, ...] | None = None
        self._graph: DriverGraph | None = None
        self._flush_ratio = 0.0
        self._comparers: dict[int, Program] = {}
        thread = ThreadPoolExecutor(1)  # the compiler works while memory is filled
        self._compiling = {size: thread.submit(_comparer, info.architecture, size) for size in (4, 8, 2, 1)}
        self._verdicts: Buffer = None
        self._most_verdicts = 0
        self._flush: Buffer = None

    def run(
        self,
        program: Program,
        launches: Sequence[Launch],
        arguments: Mapping[str, Buffer | np.generic],
        repeats: int = 1,
    ) -> float:
        """Time between two events around the launches, which the GPU finds queued when it gets to them."""
        try:
            if len(launches) * repeats == 1:
                queue = self.prepared(program, launches[0], arguments)
                self.start_clock()
                queue()
            else:
                graph = self._captured(program, launches, arguments, repeats)
                self.start_clock()
                graph.launch()
            return self.stop_clock()
        except (self.driver_error, DriverError) as error:
            raise classified(error) from None

    def compare(self, comparisons: Sequence[ArrayComparison]) -> list[Difference | None]:
        """Compare on the GPU, all in one go, and bring back the verdicts."""
        size_bytes = _RESULT_BYTES * len(comparisons)
        self._reserve_verdicts(len(comparisons))
        self.fill(self._verdicts, 0xFF, size_bytes)
        for position, comparison in enumerate(comparisons):
            self._enqueue_comparison(comparison, position)
        words = self.read(self._verdicts, size_bytes).view(np.uint64).tolist()
        return [difference_of(*pair) for pair in zip(words[::2], words[1::2], strict=True)]

    def flush_cache(self) -> None:
        """Read four times the L2's size; also keeps the GPU busy while the next run is being queued.

        Reading leaves clean lines behind. After a memset the run would pay for writing the flush back.
        """
        size_bytes = 4 * self.info.cache_bytes
        if self._flush is None:
            self._flush = self.allocate(size_bytes)
            self.fill(self._flush, 0, size_bytes)
            self._reserve_verdicts(1)
        self._enqueue_comparison(ArrayComparison(self._flush, self._flush, "uint32", size_bytes // 4), 0)

    def forget(self) -> None:
        """Drop the latest graph, whose arguments are buffers."""
        self._graph = self._graph_of = None

    def conditions(self) -> Mapping[str, Value]:
        """What the management library tells, and how much longer reading memory takes after a flush."""
        if not self._flush_ratio:
            self._flush_ratio = self._test_flush()
        return self._gauge.conditions() | {"flush_ratio": round(self._flush_ratio, 2)}

    def energy_j(self) -> float | None:
        """Energy since the driver was loaded, in joules; None where the GPU does not count it."""
        return self._gauge.energy_j()

    def _captured(
        self,
        program: Program,
        launches: Sequence[Launch],
        arguments: Mapping[str, Buffer | np.generic],
        repeats: int,
    ) -> DriverGraph:
        def enqueue() -> None:
            for step in list(launches) * repeats:
                self.prepared(program, step, arguments)()

        key = (program, tuple(launches), tuple(arguments.items()), repeats)
        if self._graph is None or self._graph_of != key:
            self._graph, self._graph_of = DriverGraph(self.stream, enqueue), key
        return self._graph

    def _test_flush(self) -> float:
        """Time in which one block reads 1 MiB after a flush, over the time when it was read just before.

        One block alone waits for every load, so what differs is the distance to the data.
        """
        self.flush_cache()
        program, step, values = self._comparison(
            ArrayComparison(self._flush, self._flush, "uint32", 2**18), 0
        )
        alone = [replace(step, grid=(1, 1, 1))]
        self.run(program, alone, values)
        warm_ms = min(self.run(program, alone, values) for _ in range(3))
        self.flush_cache()
        return self.run(program, alone, values) / warm_ms

    def _reserve_verdicts(self, count: int) -> None:
        if count > self._most_verdicts:
            self._verdicts, self._most_verdicts = self.allocate(_RESULT_BYTES * count), count

    def _enqueue_comparison(self, wanted: ArrayComparison, position: int) -> None:
        self.prepared(*self._comparison(wanted, position))()

    def _comparison(
        self, wanted: ArrayComparison, position: int
    ) -> tuple[Program, Launch, Mapping[str, Buffer | np.generic]]:
        item_bytes = np.dtype(wanted.dtype).itemsize
        if item_bytes not in self._comparers:
            self._comparers[item_bytes] = self.load(self._compiling[item_bytes].result())
        result = self.region(self._verdicts, _RESULT_BYTES * position, _RESULT_BYTES)
        gap = 0 if wanted.inside else wanted.count - 2 * wanted.ends
        counts = (wanted.count, wanted.ends, gap, special_bits(wanted.dtype))
        numbers = (*map(np.uint64, counts), np.int32(KINDS.index(wanted.dtype)))
        tolerances = (np.float64(wanted.rtol), np.float64(wanted.atol))
        values = (wanted.actual, wanted.expected, *numbers, *tolerances, result)
        blocks = max(1, min(8 * self.info.compute_units, -(-(wanted.count - gap) // 512)))
        step = Launch("compare", (blocks, 1, 1), (512, 1, 1), 0, _COMPARE_ARGUMENTS)
        return self._comparers[item_bytes], step, dict(zip(_COMPARE_ARGUMENTS, values, strict=True))


def packed(step: Launch, arguments: Mapping[str, Buffer | np.generic]) -> list[np.generic]:
    """The arguments of a launch in its order, addresses as numbers."""
    return [_packed(arguments[name]) for name in step.arguments]


def _packed(value: Buffer | np.generic) -> np.generic:
    if not isinstance(value, np.generic):
        return np.uint64(int(value))
    return value.view(np.uint16) if value.dtype == np.float16 else value  # no package knows the type


def _comparer(architecture: str, item_bytes: int) -> Binary:
    return CudaCompiler(architecture).compile(cuda_source(item_bytes), ())
