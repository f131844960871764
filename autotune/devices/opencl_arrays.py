"""Copies, and kernels that flush a cache and compare large arrays on the device, for OpenCL.

On a CPU a work-item takes adjacent elements, because it loads whole cache lines by itself. On a GPU it takes
every n-th element, because the work-items of a warp load lines together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl

from autotune.core.c_types import element_bytes
from autotune.core.records import DeviceInfo
from autotune.devices.array_compare import ArrayComparison, special_bits
from autotune.devices.base import DIRTY, Offsets

MIN_COMPARED_BYTES = 2**20  # smaller arrays are copied to the host in little time

_MIN_GPU_FLUSH_BYTES = 256 * 2**20
_COPIED_BYTES = 4096  # a copy of a multiple of them is fast
_CPU_RUN = 4096  # adjacent elements
_DIRTY_ITEMS, _DIRTY_GROUPS = 64, 4  # of a group, and for each compute unit
_DIRTY_BYTES = 48 * 1024  # more than kernels use; a CPU fills them in a few hundred microseconds
_ITEMS_PER_UNIT = 1024
_WORDS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}  # by their bytes
_READER = """
__kernel void read_all(__global const uint4 *data, __global uint *found, ulong count)
{
    uint any = 0;
    for (ulong first = get_global_id(0) * RUN; first < count; first += get_global_size(0) * RUN) {
        const ulong end = min(first + RUN, count);
        for (ulong i = first; i < end; ++i) {
            const uint4 part = data[i];
            any |= part.x | part.y | part.z | part.w;
        }
    }
    if (any) *found = any;
}
"""
_COMPARER = """
__kernel void compare(__global const WORD *actual, __global const WORD *expected, ulong begin, ulong end,
                      WORD special, __global uint *found)
{
    WORD differing = 0;
    uint odd = 0;
    for (ulong first = begin + get_global_id(0) * RUN; first < end; first += get_global_size(0) * RUN) {
        const ulong last = min(first + RUN, end);
        for (ulong i = first; i < last; ++i) {
            const WORD word = actual[i];
            differing |= word ^ expected[i];
            odd |= (word & special) == special;
        }
    }
    if (differing || (special && odd)) *found = 1;
}
"""


_DIRTY = """
__kernel void dirty(__local volatile uint *cells, uint words, uint word)
{
    volatile uint own[64];
    for (uint i = 0; i < 64; ++i)
        own[i] = word;
    for (uint i = get_local_id(0); i < words; i += get_local_size(0))
        cells[i] = word;
}
"""


class BlockMemoryFiller:
    """Fills the local memory that most groups have, and private memory, of every compute unit."""

    def __init__(self, queue: cl.CommandQueue) -> None:
        program = cl.Program(queue.context, _DIRTY).build(["-cl-opt-disable"])  # nothing reads what it writes
        self._queue, self._kernel = queue, cl.Kernel(program, "dirty")

    def run(self) -> None:
        """Fill it and wait."""
        device = self._queue.device
        words = min(device.local_mem_size, _DIRTY_BYTES) // 4
        items = min(_DIRTY_ITEMS, device.max_work_group_size)
        self._kernel.set_args(cl.LocalMemory(4 * words), np.uint32(words), np.uint32(DIRTY))
        everywhere = (_DIRTY_GROUPS * device.max_compute_units * items,)
        cl.enqueue_nd_range_kernel(self._queue, self._kernel, everywhere, (items,)).wait()


class CacheFlusher:
    """Flushes a cache by reading a buffer of zeros; reads leave no lines to write back."""

    def __init__(self, queue: cl.CommandQueue, size_bytes: int) -> None:
        """`size_bytes` is a multiple of 16."""
        self._queue = queue
        self._kernel = _kernel(queue, _READER, "read_all")
        self.data, self.sink = (
            cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size) for size in (size_bytes, 4)
        )
        cl.enqueue_fill_buffer(queue, self.data, np.uint32(0), 0, size_bytes)

    def run(self) -> None:
        """Read the whole buffer and wait."""
        count = np.uint64(self.data.size // 16)
        _launch(self._queue, self._kernel, self.data, self.sink, count)
        self._queue.finish()


class ContentComparer:
    """Compares two arrays on the device bit by bit, which is enough for most verified arrays."""

    def __init__(self, queue: cl.CommandQueue) -> None:
        self._queue = queue
        self._found = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4)
        self._kernels: dict[int, cl.Kernel] = {}  # by the bytes of an element

    def agree(self, comparison: ArrayComparison) -> bool:
        """True if two large arrays are equal and finite; the host compares all others."""
        dtype, size = comparison.dtype, element_bytes(comparison.dtype)
        special = special_bits(dtype)
        if comparison.struct or size * comparison.count < MIN_COMPARED_BYTES:
            return False
        if not (special or dtype.startswith(("int", "uint"))):
            return False
        if size not in self._kernels:
            self._kernels[size] = _kernel(self._queue, _COMPARER, "compare", f"-DWORD={_WORDS[size]}")
        inner_end = comparison.count - comparison.ends
        inner = [(comparison.ends, inner_end, special)] if comparison.inside else []
        cl.enqueue_fill_buffer(self._queue, self._found, np.uint32(0), 0, 4)
        for begin, end, odd in [(0, comparison.ends, 0), *inner, (inner_end, comparison.count, 0)]:
            _launch(
                self._queue,
                self._kernels[size],
                comparison.actual,
                comparison.expected,
                np.uint64(begin),
                np.uint64(end),
                np.dtype(f"uint{8 * size}").type(odd),
                self._found,
            )
        differs = np.empty(1, np.uint32)
        cl.enqueue_copy(self._queue, differs, self._found)
        return not differs[0]


def copy(
    queue: cl.CommandQueue,
    target: Any,
    source: Any,
    size_bytes: int,
    offsets: Offsets = (0, 0),
    after: cl.Event | None = None,
) -> cl.Event | None:
    """Copy between buffers; or from or to the bytes of a flat array of the host, and wait.

    The bytes after the last whole page are copied separately. Intel's runtime for CPUs divides a copy into
    equal pieces: 4 times a prime number of bytes would become pieces of 4 bytes.

    Args:
        queue: Runs the copy.
        target: A buffer, or an array of bytes.
        source: The same.
        size_bytes: How much is copied.
        offsets: Where it begins in target and source, if these are buffers.
        after: What a copy between buffers waits for.

    Returns:
        The event of the last part; None if there is nothing to copy.
    """
    whole = size_bytes // _COPIED_BYTES * _COPIED_BYTES
    for begin, end in ((0, whole), (whole, size_bytes)):
        if begin == end:
            continue
        sides, places = [], dict[str, int]()
        for side, name, offset in ((target, "dst_offset", offsets[0]), (source, "src_offset", offsets[1])):
            if isinstance(side, np.ndarray):
                sides.append(side[begin:end])
            else:
                sides.append(side)
                places[name] = offset + begin
        if len(places) == 2:
            places["byte_count"] = end - begin
        after = cl.enqueue_copy(queue, *sides, wait_for=after and [after], **places)
    return after


def flush_bytes(device: DeviceInfo) -> int:
    """Bytes to read to flush a device's last-level cache: four times the cache's size.

    Some GPUs report the cache of one unit, or no cache. So a GPU reads at least 256 MiB. No device reads more
    than an eighth of its memory.
    """
    minimum = _MIN_GPU_FLUSH_BYTES if device.kind == "gpu" else 16
    return min(max(4 * device.cache_bytes, minimum), device.memory_bytes // 8) // 16 * 16


def _kernel(queue: cl.CommandQueue, source: str, name: str, *options: str) -> Any:
    run = _CPU_RUN if _is_cpu(queue) else 1
    return cl.Kernel(cl.Program(queue.context, source).build([f"-DRUN={run}", *options]), name)


def _launch(queue: cl.CommandQueue, kernel: Any, *arguments: Any) -> None:
    """Start enough work-items to keep the whole device busy.

    On a CPU each work-item is a group of its own. Otherwise Intel's runtime makes vectors across work-items,
    whose elements are far apart, and takes ten times as long.
    """
    items = int(_ITEMS_PER_UNIT * queue.device.max_compute_units)
    kernel(queue, (items,), (1,) if _is_cpu(queue) else None, *arguments)


def _is_cpu(queue: cl.CommandQueue) -> bool:
    return bool(queue.device.type & cl.device_type.CPU)
