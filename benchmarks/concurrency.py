"""What runs at the same time on a GPU: kernels on streams, copies next to kernels, the host, multiprocessors.

    python benchmarks/concurrency.py [--device cuda:0] [--rounds 7]

Four tables, of wall times of the host until all work has ended; each is the least of several rounds.

- streams: kernels of few blocks and of many, all in one stream, and each in a stream of its own.
- chunks: input to the device, kernel, result back, whole and in chunks that take turns in three streams.
- host: work of the host after it has waited for a kernel, and before.
- multiprocessors: a grid of one block, of a block on each multiprocessor, of several.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from autotune.cli.output import emit
from autotune.cli.tables import Table, table
from autotune.compilers.known_compilers import cuda_compiler
from autotune.core.records import Launch
from autotune.cuda.driver import call, check, inside, primary_context
from autotune.cuda.launch import launch_call
from autotune.cuda.memory import Memory
from autotune.cuda.module import Module
from autotune.cuda.streams import Stream
from autotune.devices.listing import find_device

SOURCE = """
extern "C" __global__ void spin(float *y, unsigned int rounds)
{
    float value = threadIdx.x;
    for (unsigned int round = 0; round < rounds; round++)
        value = value * 0.999f + 1.0f;
    if (value == -1.0f)
        *y = value;
}

extern "C" __global__ void scale(const float *x, float *y, unsigned int n, unsigned int rounds)
{
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float value = x[i];
        for (unsigned int round = 0; round < rounds; round++)
            value = value * 0.999f + 1.0f;
        y[i] = value;
    }
}
"""
THREADS = 256
ROUNDS = 100_000  # of a thread: some 0.2 ms
KERNELS = 8
ELEMENTS = 2**26  # of the copied array
WORK = 1000  # multiply-adds with each of its elements
CHUNKS = (1, 2, 4, 8, 16)
STREAMS = 3
PER_UNIT = (1, 2, 4, 8)  # blocks for each multiprocessor


class Gpu:
    """A GPU with the kernels above."""

    def __init__(self, device: str, rounds: int) -> None:
        address, self.info = find_device(device)
        self.context = primary_context(address.index)
        self.rounds = rounds
        binary = cuda_compiler(self.info.architecture).compile(SOURCE, ())
        self.module = Module(binary, self.context, stays=True)

    def launch(self, name: str, blocks: int, stream: Stream, *arguments: Any) -> None:
        """Queue a kernel."""
        step = Launch(name, (blocks, 1, 1), (THREADS, 1, 1), 0, ())
        check(name, launch_call(step, self.module.function(step), arguments, stream.handle)())

    def time_ms(self, queue: Callable[[], None]) -> float:
        """The least time until all that a function queues has ended, after a warm-up."""
        queue()
        found = []
        for _ in range(self.rounds):
            call("cuCtxSynchronize")
            began = time.perf_counter()
            queue()
            call("cuCtxSynchronize")
            found.append((time.perf_counter() - began) * 1e3)
        return min(found)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda:0", help="the GPU (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="of each time (default %(default)s)")
    parsed = parser.parse_args()
    gpu = Gpu(parsed.device, parsed.rounds)
    with inside(gpu.context):
        for one in (streams(gpu), chunks(gpu), host(gpu), multiprocessors(gpu)):
            emit(one, "")


def streams(gpu: Gpu) -> Table:
    """Times of several kernels in one stream and in several."""
    own, target = [Stream(gpu.context) for _ in range(KERNELS)], Memory(gpu.context, 4)

    def queue(blocks: int, used: int) -> None:
        for number in range(KERNELS):
            given = ctypes.c_uint64(target.address), ctypes.c_uint(ROUNDS)
            gpu.launch("spin", blocks, own[number % used], *given)

    rows = []
    for blocks in (1, max(1, gpu.info.compute_units // KERNELS), 8 * gpu.info.compute_units):
        one_ms, several_ms = (gpu.time_ms(partial(queue, blocks, used)) for used in (1, KERNELS))
        rows.append((f"{blocks:,}", f"{one_ms:.3f}", f"{several_ms:.3f}", f"{one_ms / several_ms:.2f}"))
    return table((f"blocks of {KERNELS} kernels", "one stream, ms", "a stream each, ms", "gain"), rows)


def chunks(gpu: Gpu) -> Table:
    """Times of input, kernel and result in parts."""
    size_bytes = 4 * ELEMENTS
    given, result = (pinned(size_bytes) for _ in range(2))
    x, y = (Memory(gpu.context, size_bytes) for _ in range(2))
    turns = [Stream(gpu.context) for _ in range(STREAMS)]

    def queue(count: int) -> None:
        part = ELEMENTS // count
        for number in range(count):
            stream, at, length = turns[number % STREAMS], 4 * part * number, ctypes.c_size_t(4 * part)
            source, target = ctypes.c_uint64(x.address + at), ctypes.c_uint64(y.address + at)
            call("cuMemcpyHtoDAsync_v2", source, ctypes.c_void_p(given + at), length, stream.handle)
            numbers = ctypes.c_uint(part), ctypes.c_uint(WORK)
            gpu.launch("scale", 8 * gpu.info.compute_units, stream, source, target, *numbers)
            call("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(result + at), target, length, stream.handle)

    times_ms = [gpu.time_ms(partial(queue, count)) for count in CHUNKS]
    for one in (given, result):
        call("cuMemFreeHost", ctypes.c_void_p(one))
    rows = [
        (str(count), f"{time_ms:.3f}", f"{times_ms[0] / time_ms:.2f}")
        for count, time_ms in zip(CHUNKS, times_ms, strict=True)
    ]
    return table(("chunks", "ms", "gain"), rows)


def pinned(size_bytes: int) -> int:
    """The address of pinned memory of the host."""
    address = ctypes.c_void_p()
    call("cuMemAllocHost_v2", ctypes.byref(address), ctypes.c_size_t(size_bytes))
    return address.value or 0


def host(gpu: Gpu) -> Table:
    """Times of a kernel and of work of the host that does not need it."""
    stream, target = Stream(gpu.context), Memory(gpu.context, 4)

    def queue() -> None:
        given = ctypes.c_uint64(target.address), ctypes.c_uint(ROUNDS)
        gpu.launch("spin", gpu.info.compute_units, stream, *given)

    kernel_ms = gpu.time_ms(queue)

    def work() -> None:
        end = time.perf_counter() + kernel_ms * 1e-3
        while time.perf_counter() < end:
            pass

    def wait_first() -> None:
        queue()
        stream.wait()
        work()

    def work_first() -> None:
        queue()
        work()

    rows = [
        ("the kernel alone", f"{kernel_ms:.3f}"),
        ("it waits, then works as long", f"{gpu.time_ms(wait_first):.3f}"),
        ("it works, then waits", f"{gpu.time_ms(work_first):.3f}"),
    ]
    return table(("the host", "ms"), rows)


def multiprocessors(gpu: Gpu) -> Table:
    """Rates of grids of different sizes: a copy of one array, and arithmetic of as much for each block."""
    x, y = (Memory(gpu.context, 4 * ELEMENTS) for _ in range(2))
    stream = Stream(gpu.context)

    def copy(blocks: int) -> None:
        given = ctypes.c_uint64(x.address), ctypes.c_uint64(y.address)
        gpu.launch("scale", blocks, stream, *given, ctypes.c_uint(ELEMENTS), ctypes.c_uint(1))

    def compute(blocks: int) -> None:
        gpu.launch("spin", blocks, stream, ctypes.c_uint64(y.address), ctypes.c_uint(ROUNDS))

    rows = []
    for blocks in grids(gpu.info.compute_units):
        copied = 8 * ELEMENTS / gpu.time_ms(partial(copy, blocks)) * 1e-6
        computed = 2.0 * blocks * THREADS * ROUNDS / gpu.time_ms(partial(compute, blocks)) * 1e-6
        rows.append((f"{blocks:,}", f"{copied:,.1f}", f"{computed:,.1f}"))
    return table((f"blocks of {THREADS} threads", "GB/s", "GFLOP/s"), rows)


def grids(units: int) -> Iterator[int]:
    """Grids from one block to several for each multiprocessor."""
    blocks = 1
    while blocks < units:
        yield blocks
        blocks *= 2
    yield from (units * each for each in PER_UNIT)


if __name__ == "__main__":
    main()
