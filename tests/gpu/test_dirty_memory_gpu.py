"""What a kernel finds in shared memory that it has not written, on a real GPU."""

import numpy as np
import pytest

from autotune.core.records import Launch
from autotune.devices.base import DIRTY
from autotune.devices.cuda import open_compiler, open_device
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu
WORDS = 1024
SOURCE = """
extern "C" __global__ void look(unsigned *found)
{
    __shared__ unsigned cells[1024];
    if (gridDim.y == 2)  // never: it makes the array stay
        cells[threadIdx.x] = 0;
    __syncthreads();
    found[blockIdx.x * blockDim.x + threadIdx.x] = ((volatile unsigned *)cells)[threadIdx.x];
}
"""


def test_a_kernel_that_reads_shared_memory_before_it_writes_finds_large_numbers():
    devices_here("cuda")
    device = open_device(0)
    program = device.load(open_compiler(0).compile(SOURCE, (), ("look",)))
    blocks = device.info.compute_units
    found = device.allocate(4 * WORDS * blocks)
    device.dirty_block_memory()
    device.run(program, [Launch("look", (blocks, 1, 1), (WORDS, 1, 1), 0, ("found",))], {"found": found})
    words = device.read(found, 4 * WORDS * blocks).view(np.uint32)
    assert np.mean(words == DIRTY) > 0.9
