"""Kernels by their names in C++ are found and launched on a GPU."""

import numpy as np
import pytest

from autotune.core.records import Launch
from autotune.devices import backend
from autotune.errors import LaunchError
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu

SOURCE = """
namespace outer { template <class T, int N> __global__ void set(T *x) { x[threadIdx.x] = N; } }
__global__ void scale(float *x) { x[threadIdx.x] *= 2; }
__global__ void scale(int *x, int by) { x[threadIdx.x] *= by; }
"""
SET, SCALE = "outer::set<float, 3>", "scale(float *)"


def opened(name):
    devices_here(name)
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


VARIABLES = """
namespace outer { __constant__ float filter[4]; }
__device__ float offset;
__global__ void apply(float *x) { x[threadIdx.x] = outer::filter[threadIdx.x] + offset; }
"""


@pytest.mark.parametrize("name", ["cuda", "pycuda"])
def test_arrays_are_copied_to_variables_before_a_launch(name):
    device, compiler = opened(name)
    program = device.load(compiler.compile(VARIABLES, (), ("apply", "outer::filter", "offset")))
    x, content = device.allocate(16), device.allocate(16)
    step = Launch("apply", (1, 1, 1), (4, 1, 1), 0, ("x",))
    for values in (np.arange(4, dtype=np.float32), np.full(4, 5, np.float32)):
        device.write(content, values.view(np.uint8))
        device.set_variable(program, "outer::filter", content, 16)
        device.set_variable(program, "offset", content, 4)
        device.run(program, [step], {"x": x})
        assert np.array_equal(device.read(x, 16).view(np.float32), values + values[0])
    with pytest.raises(LaunchError, match="the array has 16 bytes, the variable 4"):
        device.set_variable(program, "offset", content, 16)
    with pytest.raises(LaunchError, match="no variable 'gone'"):
        device.set_variable(program, "gone", content, 16)
