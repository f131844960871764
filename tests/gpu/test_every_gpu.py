"""What holds for the first GPU holds for the others."""

from itertools import product

import numpy as np
import pytest

from autotune.core.records import Launch
from autotune.devices import backend
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu

SHARED_BYTES = 64 * 1024  # more than a kernel gets unasked
REVERSED = """
extern "C" __global__ void reversed(const int *x, int *y, int n)
{
    extern __shared__ int held[];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        held[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[i] = held[n - 1 - i];
}
"""


@pytest.mark.parametrize("name", ["cuda", "pycuda"])
def test_each_takes_large_shared_memory_for_one_launch_and_for_several(name):
    found = devices_here(name)
    x = np.arange(SHARED_BYTES // 4, dtype=np.int32)
    step = Launch("reversed", (1, 1, 1), (256, 1, 1), SHARED_BYTES, ("x", "y", "n"))
    for number in range(len(found)):
        device = backend(name).open_device(number)
        program = device.load(backend(name).open_compiler(number).compile(REVERSED, ()))
        arguments = {
            "x": device.allocate(x.nbytes),
            "y": device.allocate(x.nbytes),
            "n": np.int32(x.size),
        }
        device.write(arguments["x"], x.view(np.uint8))
        for launches, graph in product(([step], [step, step]), (None, True, False)):
            device.fill(arguments["y"], 0xFF, x.nbytes)
            device.run(program, launches, arguments, graph=graph, warm_first=graph is not None)
            assert np.array_equal(device.read(arguments["y"], x.nbytes).view(np.int32), x[::-1]), number
