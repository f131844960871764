"""The contract of devices, held by every backend, and how a device is chosen."""

import hashlib

import pytest

from autotune.core.records import Launch
from autotune.devices import Address, backend, choose, list_devices
from autotune.errors import InputError
from autotune.testing import DeviceContract
from tests.devices_here import devices_here

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


class TestDevices(DeviceContract):
    @pytest.fixture(
        params=[
            *(pytest.param(name, marks=pytest.mark.gpu) for name in ("cuda", "pycuda")),
            "opencl",
            "fake",
        ],
        scope="module",
    )
    @classmethod
    def name(cls, request):
        return request.param

    @pytest.fixture(scope="module")
    @classmethod
    def backend(cls, name):
        devices_here(name)
        return backend(name)

    @pytest.fixture(scope="module")
    @classmethod
    def source(cls, name):
        return SOURCES[name]

    @pytest.fixture(scope="module")
    @classmethod
    def broken(cls, name):
        return BROKEN[name]

    def test_it_says_which_backend_it_is_of(self, name, device):
        assert device.info.backend == name

    def test_the_hash_of_a_binary_is_of_all_its_data(self, device, binary):
        if device.info.runtime.startswith("Intel "):
            pytest.skip("the same program gives other bytes each time: see test_opencl.py")
        assert binary.sha256 == hashlib.sha256(binary.data).hexdigest()


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


def test_the_fake_device_is_throttled_for_the_runs_that_a_kernel_says():
    device, compiler = backend("fake").open_device(0), backend("fake").open_compiler(0)
    source = "def one(grid, block):\n    return 1.0\n"
    cool = device.load(compiler.compile(source, ()))
    hot = device.load(compiler.compile(source + "def throttled_runs():\n    return 2\n", ()))
    launches = [Launch("one", (1, 1, 1), (1, 1, 1), 0, ())]
    runs = [
        (device.run(program, launches, {}), dict(device.conditions())) for program in (cool, hot, cool, cool)
    ]
    throttled = (1.5, {"throttled": "power cap"})
    assert runs == [(1.0, {}), throttled, throttled, (1.0, {})]
