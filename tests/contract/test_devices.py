"""One contract for every device backend: memory, launches, errors, and the time they report."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from autotune.devices import Address, backend, choose, list_devices
from autotune.devices.base import CompileError, LaunchError, OutOfMemory
from autotune.devices.comparison import Comparison
from autotune.errors import InputError, MissingExtra
from autotune.model import Launch

OPENCL = """
#define FACTOR 2
__kernel void twice(__global const int* x, __global int* y, int n) {
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = FACTOR * x[i];
}
"""
PYTHON = """
FACTOR = 2
def twice(grid, block, x, y, n):
    y.view("int32")[:n] = FACTOR * x.view("int32")[:n]
"""
CUDA = """
#define FACTOR 2
extern "C" __global__ void twice(const int* x, int* y, int n) {
    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = FACTOR * x[i];
}
"""
SOURCES = {"cuda": CUDA, "pycuda": CUDA, "opencl": OPENCL, "fake": PYTHON}
BROKEN = {
    "cuda": "__global__ void twice( {",
    "pycuda": "__global__ void twice( {",
    "opencl": "__kernel void twice( {",
    "fake": "def twice(:",
}


@pytest.fixture(
    params=[*(pytest.param(name, marks=pytest.mark.gpu) for name in ("cuda", "pycuda")), "opencl", "fake"],
    scope="module",
)
def name(request):
    try:
        module = backend(request.param)
    except MissingExtra as missing:
        pytest.skip(str(missing))
    if not module.list_devices():
        pytest.skip(f"no {request.param} device on this machine")
    return request.param


@pytest.fixture(scope="module")
def device(name):
    return backend(name).open_device(0)


@pytest.fixture(scope="module")
def binary(name, device):
    return backend(name).open_compiler(0).compile(SOURCES[name], ())


def _launch(entry="twice", block=64):
    return Launch(entry, (4, 1, 1), (block, 1, 1), 0, ("x", "y", "n"))


def test_the_description_is_complete_and_stable(name, device):
    info = device.info
    assert info == backend(name).list_devices()[0]
    assert info.backend == name and info.kind in ("cpu", "gpu") and info.slug == info.slug.lower()
    assert min(info.compute_units, info.warp_size, info.max_threads_per_block, info.memory_bytes) > 0
    assert info.driver and info.runtime


def test_memory_keeps_what_is_written_and_regions_are_parts_of_it(device):
    data = np.arange(16_384, dtype=np.uint8)
    buffer, other = device.allocate(data.size), device.allocate(data.size)
    device.write(buffer, data)
    part = device.region(buffer, 4096, 100)
    assert np.array_equal(device.read(part, 100), data[4096:4196])
    device.write(part, np.full(100, 7, np.uint8))
    device.copy(other, buffer, data.size)
    seen = device.read(other, data.size)
    assert (seen[4096:4196] == 7).all() and np.array_equal(seen[4196:], data[4196:])


def test_more_memory_than_there_is_is_refused_and_the_device_goes_on(device):
    with pytest.raises(OutOfMemory):
        device.allocate(2**50)
    device.forget()
    assert device.read(device.allocate(4), 4).size == 4


def test_a_launch_computes_and_takes_time(device, binary):
    x = np.arange(1000, dtype=np.int32)
    source, target = device.allocate(x.nbytes), device.allocate(x.nbytes)
    device.write(source, x.view(np.uint8))
    program = device.load(binary)
    arguments = {"x": source, "y": target, "n": np.int32(1000)}
    one_ms = min(device.run(program, [_launch()], arguments) for _ in range(3))
    assert np.array_equal(device.read(target, x.nbytes).view(np.int32), 2 * x)
    assert one_ms > 0
    assert device.run(program, [_launch(), _launch()], arguments, repeats=50) > one_ms


def test_arrays_are_compared_where_they_are(device):
    wanted = np.arange(100_000, dtype=np.float32)
    found = wanted.copy()
    found[[70, 99_999]] += 0.5
    one, other = device.allocate(wanted.nbytes), device.allocate(wanted.nbytes)
    device.write(one, found.view(np.uint8))
    device.write(other, wanted.view(np.uint8))
    pair = Comparison(one, other, "float32", 100_000)
    wanted = [
        (replace(pair, count=70), None),
        (pair, (70, 2)),
        (replace(pair, rtol=1e-3), (70, 1)),
        (replace(pair, atol=1), None),
        (replace(pair, dtype="uint8", count=280), None),
        (replace(pair, atol=1, ends=70), (99_999, 1)),
        (replace(pair, atol=1, ends=71), (70, 2)),
        (replace(pair, ends=71, inside=False), (70, 2)),
        (replace(pair, ends=70, inside=False), (99_999, 1)),
    ]
    assert device.compare([one for one, _ in wanted]) == [verdict for _, verdict in wanted]
    assert device.compare([]) == []


@pytest.mark.parametrize(("found", "wanted"), [(np.nan, np.nan), (np.inf, 1.0), (1.0, np.inf)])
def test_nan_and_lone_infinities_never_agree(device, found, wanted):
    one, other = device.allocate(8), device.allocate(8)
    device.write(one, np.array([found]).view(np.uint8))
    device.write(other, np.array([wanted]).view(np.uint8))
    assert device.compare([Comparison(one, other, "float64", 1, rtol=1, atol=1)]) == [(0, 1)]


def test_the_binary_says_what_it_is(binary):
    assert binary.sha256 == hashlib.sha256(binary.data).hexdigest() and binary.compile_ms > 0


def test_a_source_that_does_not_compile_is_a_compile_error_with_a_log(name, device):
    with pytest.raises(CompileError) as error:
        backend(name).open_compiler(0).compile(BROKEN[name], ())
    assert str(error.value).strip()


def test_an_unknown_entry_is_a_launch_error_and_the_device_goes_on(device, binary):
    program = device.load(binary)
    x = device.allocate(4000)
    arguments = {"x": x, "y": x, "n": np.int32(10)}
    with pytest.raises(LaunchError, match="thrice"):
        device.run(program, [_launch("thrice")], arguments)
    assert device.run(program, [_launch()], arguments) >= 0


def test_a_block_that_is_too_large_is_a_launch_error_and_the_device_goes_on(device, binary):
    program = device.load(binary)
    x = device.allocate(4000)
    arguments = {"x": x, "y": x, "n": np.int32(10)}
    with pytest.raises(LaunchError):
        device.run(program, [_launch(block=1_000_000)], arguments)
    assert device.run(program, [_launch()], arguments) >= 0


def test_the_cache_can_be_flushed_twice(device):
    if device.info.cache_bytes > 2**28:
        pytest.skip("the last-level cache that this machine reports is too large to flush in a test")
    device.flush_cache()
    device.flush_cache()


def test_devices_are_found_by_address_backend_name_and_slug():
    devices = list_devices()
    address, info = next(item for item in devices if item[0] == Address("fake", 0))
    for wanted in ("fake:0", "fake", "Fake GPU", "fake-gpu"):
        assert choose(wanted, devices) == (address, info)
    with pytest.raises(InputError, match="Fake GPU"):
        choose("Fake GPUs", devices)


def test_without_a_wish_a_gpu_is_preferred_and_the_fake_one_never_taken():
    devices = list_devices()
    chosen, info = choose(None, devices)
    assert chosen.backend != "fake"
    assert info.kind == "gpu" or all(
        item.kind == "cpu" for address, item in devices if address.backend != "fake"
    )
