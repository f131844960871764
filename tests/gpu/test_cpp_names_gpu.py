"""Kernels by their names in C++ are found and launched on a GPU."""

import numpy as np
import pytest

from autotune.core.records import Launch
from autotune.devices import backend
from autotune.errors import MissingExtra

pytestmark = pytest.mark.gpu

SOURCE = """
namespace outer { template <class T, int N> __global__ void set(T *x) { x[threadIdx.x] = N; } }
__global__ void scale(float *x) { x[threadIdx.x] *= 2; }
__global__ void scale(int *x, int by) { x[threadIdx.x] *= by; }
"""
SET, SCALE = "outer::set<float, 3>", "scale(float *)"


def opened(name):
    try:
        found = backend(name).list_devices()
    except MissingExtra as missing:
        pytest.skip(str(missing))
    if not found:
        pytest.skip("no NVIDIA GPU")
    return backend(name).open_device(0), backend(name).open_compiler(0)


@pytest.mark.parametrize("name", ["cuda", "pycuda"])
@pytest.mark.parametrize("together", [False, True])
def test_an_instance_of_a_template_and_an_overload_run(name, together):
    device, compiler = opened(name)
    program = device.load(compiler.compile(SOURCE, (), (SET, SCALE)))
    x = device.allocate(32 * 4)
    steps = [Launch(entry, (1, 1, 1), (32, 1, 1), 0, ("x",)) for entry in (SET, SCALE)]
    for launches in [steps] if together else [[step] for step in steps]:
        device.run(program, launches, {"x": x})
    assert np.array_equal(device.read(x, 32 * 4).view(np.float32), np.full(32, 6, np.float32))
