"""What OpenCL devices do with large arrays, and memory that a driver refuses, tried on the CPU."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest

from autotune import opencl_devices
from autotune.core.records import Launch
from autotune.devices.array_compare import ArrayComparison
from autotune.devices.base import DIRTY
from autotune.devices.opencl import OpenCLCompiler, open_device
from autotune.devices.opencl_arrays import MIN_COMPARED_BYTES, CacheFlusher, ContentComparer, flush_bytes
from autotune.errors import OutOfMemory
from tests.devices_here import intel_here

MIB = 2**20


def gpu(cache_bytes, memory_bytes):
    return replace(open_device(0).info, kind="gpu", cache_bytes=cache_bytes, memory_bytes=memory_bytes)


@pytest.mark.parametrize(
    ("cache_bytes", "memory_bytes", "expected_bytes"),
    [
        (0, 2**34, 256 * MIB),  # none is reported
        (16 * 1024, 2**34, 256 * MIB),  # that of one unit
        (128 * MIB, 2**36, 512 * MIB),
        (4 * MIB, 2**30, 128 * MIB),  # an eighth of what there is
        (2**40, 1000, 112),
    ],
)
def test_a_gpu_gets_four_times_its_cache_within_limits(cache_bytes, memory_bytes, expected_bytes):
    assert flush_bytes(gpu(cache_bytes, memory_bytes)) == expected_bytes


def test_a_gpu_that_reports_no_cache_is_flushed_all_the_same():
    device = open_device(0)
    device.info = gpu(0, 64 * MIB)
    device.flush_cache()
    device.flush_cache()


def test_all_of_the_buffer_is_read():
    context = cl.Context(opencl_devices()[:1])
    queue = cl.CommandQueue(context)
    flusher = CacheFlusher(queue, 16 * 1001)
    for place in (0, 2000, 4003):
        cl.enqueue_fill_buffer(queue, flusher.data, np.uint32(0), 0, flusher.data.size)
        cl.enqueue_fill_buffer(queue, flusher.sink, np.uint32(0), 0, 4)
        cl.enqueue_copy(queue, flusher.data, np.array([7], np.uint32), dst_offset=4 * place)
        flusher.run()
        found = np.empty(1, np.uint32)
        cl.enqueue_copy(queue, found, flusher.sink)
        assert found[0] == 7, place


@pytest.mark.parametrize(
    ("dtype", "inside"),
    [("int8", True), ("float16", True), ("float32", True), ("float32", False), ("uint64", True)],
)
def test_large_arrays_are_compared_on_the_device(dtype, inside):
    context = cl.Context(opencl_devices()[:1])
    queue = cl.CommandQueue(context)
    count, ends = MIN_COMPARED_BYTES // np.dtype(dtype).itemsize + 7, 5
    content = (np.arange(count) % 100).astype(dtype)
    places = [0, ends - 1, ends, 4096, count // 2, count - ends - 1, count - ends, count - 1]
    is_checked = [inside or place < ends or place >= count - ends for place in places]
    buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, content.nbytes) for _ in range(2)]
    comparer = ContentComparer(queue)

    def agree(found, wanted):
        for buffer, data in zip(buffers, (found, wanted), strict=True):
            cl.enqueue_copy(queue, buffer, data)
        return comparer.agree(ArrayComparison(*buffers, dtype, count, ends=ends, inside=inside))

    assert agree(content, content)
    for place, checked in zip(places, is_checked, strict=True):
        damaged = content.copy()
        damaged[place] += 1
        assert agree(damaged, content) is not checked, place
    if content.dtype.kind == "f":  # NaN differs from itself in the array, and belongs into a guard zone
        for place in places:
            damaged = content.copy()
            damaged[place] = np.nan
            is_guard = place < ends or place >= count - ends
            assert agree(damaged, damaged) is (is_guard or not inside), place


def test_small_arrays_and_structures_are_left_to_the_host():
    context = cl.Context(opencl_devices()[:1])
    comparer = ContentComparer(cl.CommandQueue(context))
    assert not comparer.agree(ArrayComparison(None, None, "float32", MIN_COMPARED_BYTES // 4 - 1))
    assert not comparer.agree(ArrayComparison(None, None, "uint8", 2**30, struct="struct {float x; int y;}"))
    assert not comparer.agree(ArrayComparison(None, None, "complex64", 2**30))


def test_a_buffer_larger_than_any_memory_is_refused():
    with pytest.raises(OutOfMemory, match="a buffer of 1125899906842624 bytes"):
        open_device(0).allocate(2**50)


@pytest.mark.parametrize("use", ["write", "copy", "flush_cache"])
def test_memory_that_the_driver_refuses_at_first_use_is_told_as_such(use, monkeypatch):
    device = open_device(0)
    device.info = gpu(0, 64 * MIB)
    one, other = device.allocate(16), device.allocate(16)
    arguments = {"write": (one, np.zeros(16, np.uint8)), "copy": (one, other, 16), "flush_cache": ()}[use]

    def refuse(*_, **__):
        raise cl.MemoryError("clEnqueue failed: MEM_OBJECT_ALLOCATION_FAILURE")

    monkeypatch.setattr(cl, "enqueue_copy", refuse)
    monkeypatch.setattr(cl, "enqueue_fill_buffer", refuse)
    expected_bytes = 8 * MIB if use == "flush_cache" else 16
    with pytest.raises(OutOfMemory, match=f"a buffer of {expected_bytes} bytes: .*ALLOCATION_FAILURE"):
        getattr(device, use)(*arguments)
    monkeypatch.undo()
    getattr(device, use)(*arguments)


def test_a_kernel_that_reads_local_memory_before_it_writes_finds_large_numbers():
    number = intel_here()  # where another runtime keeps local memory is its own business
    device = open_device(number)
    source = """
__kernel void look(__global uint *found)
{
    __local uint cells[64];
    if (get_global_size(0) == 1)  /* never: it makes the array stay */
        cells[get_global_id(0)] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    found[get_local_id(0)] = cells[get_local_id(0)];
}
"""
    program = device.load(OpenCLCompiler(number).compile(source, (), ("look",)))
    found = device.allocate(256)
    seen = []
    for _ in range(20):  # a busy machine runs the kernel on a thread that a fill has not reached
        device.dirty_block_memory()
        device.run(program, [Launch("look", (1, 1, 1), (64, 1, 1), 0, ("found",))], {"found": found})
        seen.append(set(device.read(found, 256).view(np.uint32)))
    assert {DIRTY} in seen


def test_a_repeated_byte_takes_no_memory_of_the_host():
    device, size_bytes = open_device(0), 4 * MIB + 3
    buffer = device.allocate(2 * size_bytes)
    device.write(buffer, np.zeros(2 * size_bytes, np.uint8))
    tracemalloc.start()
    device.write(buffer, np.broadcast_to(np.uint8(0xA5), size_bytes))
    device.write(buffer, np.broadcast_to(np.uint8(0), 0))
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < MIB
    found = device.read(buffer, 2 * size_bytes)
    assert (found[:size_bytes] == 0xA5).all() and not found[size_bytes:].any()
