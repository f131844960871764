"""What the OpenCL adapter does with large arrays on the device itself: flush a cache, compare contents.

On a CPU a work-item takes elements that lie side by side, since it loads whole cache lines for itself; on a
GPU it takes every n-th one, since a warp loads lines together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl

from autotune.core.c_types import element_bytes
from autotune.core.records import DeviceInfo
from autotune.devices.array_compare import ArrayComparison, special_bits

MIN_COMPARED_BYTES = 2**22  # smaller arrays are on the host sooner than a kernel is built

_MIN_GPU_FLUSH_BYTES = 256 * 2**20
_CPU_RUN = 4096  # elements side by side
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
__kernel void compare(__global const WORD *actual, __global const WORD *expected, ulong visited, ulong ends,
                      ulong gap, WORD special, __global uint *found)
{
    uint any = 0;
    for (ulong first = get_global_id(0) * RUN; first < visited; first += get_global_size(0) * RUN) {
        const ulong end = min(first + RUN, visited);
        for (ulong i = first; i < end; ++i) {
            const ulong at = i + (i < ends ? 0 : gap);
            const WORD word = actual[at];
            const uint inside = i >= ends && i < visited - ends;
            any |= word != expected[at] || (inside && special && (word & special) == special);
        }
    }
    if (any) *found = any;
}
"""


class CacheFlusher:
    """Flushes a cache by reading a buffer of zeros; reading leaves no lines that have to be written back."""

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
        self._kernel(self._queue, (_items(self._queue),), None, self.data, self.sink, count)
        self._queue.finish()


class ContentComparer:
    """Says on the device whether two arrays agree bit by bit, which most that are verified do."""

    def __init__(self, queue: cl.CommandQueue) -> None:
        self._queue = queue
        self._found = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4)
        self._kernels: dict[int, cl.Kernel] = {}  # by the bytes of an element

    def agree(self, comparison: ArrayComparison) -> bool:
        """Whether two large arrays are equal and finite; of others the host must say whether they agree."""
        dtype, size = comparison.dtype, element_bytes(comparison.dtype)
        special = special_bits(dtype)
        if comparison.struct or size * comparison.count < MIN_COMPARED_BYTES:
            return False
        if not (special or dtype.startswith(("int", "uint"))):
            return False
        if size not in self._kernels:
            self._kernels[size] = _kernel(self._queue, _COMPARER, "compare", f"-DWORD={_WORDS[size]}")
        gap = 0 if comparison.inside else comparison.count - 2 * comparison.ends
        cl.enqueue_fill_buffer(self._queue, self._found, np.uint32(0), 0, 4)
        self._kernels[size](
            self._queue,
            (_items(self._queue),),
            None,
            comparison.actual,
            comparison.expected,
            np.uint64(comparison.count - gap),
            np.uint64(comparison.ends),
            np.uint64(gap),
            np.dtype(f"uint{8 * size}").type(special),
            self._found,
        )
        differs = np.empty(1, np.uint32)
        cl.enqueue_copy(self._queue, differs, self._found)
        return not differs[0]


def flush_bytes(device: DeviceInfo) -> int:
    """How much to read to flush a device's last-level cache: four times its size.

    Some GPUs report the cache of one unit, or none. So a GPU reads at least 256 MiB, and no device reads more
    than an eighth of its memory.
    """
    minimum = _MIN_GPU_FLUSH_BYTES if device.kind == "gpu" else 16
    return min(max(4 * device.cache_bytes, minimum), device.memory_bytes // 8) // 16 * 16


def _kernel(queue: cl.CommandQueue, source: str, name: str, *options: str) -> Any:
    run = _CPU_RUN if queue.device.type & cl.device_type.CPU else 1
    return cl.Kernel(cl.Program(queue.context, source).build([f"-DRUN={run}", *options]), name)


def _items(queue: cl.CommandQueue) -> int:
    """Enough work-items to keep the whole device busy."""
    return int(_ITEMS_PER_UNIT * queue.device.max_compute_units)
