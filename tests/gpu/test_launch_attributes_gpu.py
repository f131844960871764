"""Cooperative launches, clusters and programmatic launches work on a GPU, alone and in a graph."""

import numpy as np
import pytest

from autotune.core.records import Launch
from autotune.devices import backend
from autotune.errors import LaunchError
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu

SOURCE = r"""
extern "C" __global__ void all_blocks(unsigned *counter, unsigned *seen)  // a barrier of the whole grid
{
    if (threadIdx.x == 0) {
        atomicAdd(counter, 1);
        while (*(volatile unsigned *)counter % gridDim.x) {}
        seen[blockIdx.x] = 1;
    }
}
extern "C" __global__ void clusters(unsigned *seen)
{
#if __CUDA_ARCH__ >= 900
    unsigned size, rank;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) seen[blockIdx.x] = 100 * size + rank;
#endif
}
extern "C" __global__ void early(unsigned *seen)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    if (threadIdx.x == 0) seen[blockIdx.x] += 1;
}
extern "C" __global__ void add(unsigned *seen, unsigned by)
{
    for (int i = 0; i < 20000; i++) asm volatile("" ::: "memory");
    if (threadIdx.x == 0) seen[blockIdx.x] += by;
}
"""
BLOCKS = 16


@pytest.fixture(params=["cuda", "pycuda"])
def opened(request):
    devices_here(request.param)
    device = backend(request.param).open_device(0)
    program = device.load(backend(request.param).open_compiler(0).compile(SOURCE, ()))
    is_hopper = int(device.info.architecture.removeprefix("sm_").rstrip("af")) >= 90
    arrays = {name: device.allocate(4 * BLOCKS) for name in ("counter", "seen", "x")}
    for array in arrays.values():
        device.write(array, np.zeros(4 * BLOCKS, np.uint8))
    return device, program, arrays | {"ten": np.uint32(10)}, is_hopper


def step(entry, *arguments, blocks=BLOCKS, **attributes):
    return Launch(entry, (blocks, 1, 1), (32, 1, 1), 0, arguments, **attributes)


def found(device, array):
    return device.read(array, 4 * BLOCKS).view(np.uint32).tolist()


@pytest.mark.parametrize("repeats", [1, 2])
def test_all_blocks_of_a_cooperative_launch_are_resident(opened, repeats):
    device, program, arrays, _ = opened
    device.run(program, [step("all_blocks", "counter", "seen", cooperative=True)], arrays, repeats)
    assert found(device, arrays["seen"]) == [1] * BLOCKS
    with pytest.raises(LaunchError, match="COOPERATIVE_LAUNCH_TOO_LARGE"):
        too_many = step("all_blocks", "counter", "seen", blocks=2**20, cooperative=True)
        device.run(program, [too_many], arrays, repeats)
    device.run(program, [step("add", "x", "ten")], arrays)  # the device stays usable


@pytest.mark.parametrize("repeats", [1, 2])
def test_blocks_form_clusters(opened, repeats):
    device, program, arrays, is_hopper = opened
    if not is_hopper:
        pytest.skip("clusters need compute capability 9.0")
    device.run(program, [step("clusters", "seen", cluster=(4, 1, 1))], arrays, repeats)
    assert found(device, arrays["seen"]) == [400 + block % 4 for block in range(BLOCKS)]


def test_a_programmatic_launch_sees_what_the_one_before_it_wrote(opened):
    device, program, arrays, is_hopper = opened
    if not is_hopper:
        pytest.skip("programmatic launches need compute capability 9.0")
    plan = [step("add", "seen", "ten"), step("early", "seen", programmatic=True)]
    device.run(program, plan, arrays, 2)
    assert found(device, arrays["seen"]) == [22] * BLOCKS
