"""What is read from a cubin, and what is computed from it, is what the driver of a real GPU says."""

import pytest

from autotune.compilers.nvrtc import CudaCompiler
from autotune.compilers.occupancy import occupancy, why_refused
from autotune.compilers.resource_usage import read_resources
from autotune.core.records import Launch
from autotune.cuda.driver import call, primary_context
from autotune.devices import backend
from autotune.errors import MissingExtra
from autotune.hardware.architectures import ARCHITECTURES

pytestmark = pytest.mark.gpu

KERNEL = """
extern "C" __global__ void kernel(float* x, int n)
{
    extern __shared__ float room[];
    __shared__ float part[PART];
    float a[LIVE];
    part[threadIdx.x % PART] = room[threadIdx.x % 2];
    for (int i = 0; i < LIVE; i++) a[i] = x[i * n + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < n; k++)
        for (int i = 0; i < LIVE; i++) a[i] = a[i] * a[(i * 7 + 3) % LIVE] + part[k % PART];
    for (int i = 0; i < LIVE; i++) x[i * n + threadIdx.x] = a[i];
}
"""


def _architecture():
    try:
        devices = backend("cuda").list_devices()
    except MissingExtra:
        return None
    return ARCHITECTURES.get(devices[0].architecture) if devices else None


@pytest.mark.skipif(_architecture() is None, reason="no NVIDIA GPU of a known architecture on this machine")
def test_resources_and_occupancy_are_those_of_the_driver():
    from cuda.bindings import driver

    def answer(result, *values):
        assert result == driver.CUresult.CUDA_SUCCESS, result
        return values[0] if values else None

    call("cuCtxSetCurrent", primary_context(0))
    architecture, attribute = _architecture(), driver.CUfunction_attribute
    compiler, compared = CudaCompiler(architecture.name), set()
    for live in (4, 24, 40, 96):
        for part in (1, 6000):
            options = (f"-DLIVE={live}", f"-DPART={part}", "--maxrregcount=96")
            data = compiler.compile(KERNEL, options).data
            kernel = read_resources(data)["kernel"]
            module = answer(*driver.cuModuleLoadData(data))
            function = answer(*driver.cuModuleGetFunction(module, b"kernel"))
            told = [
                answer(*driver.cuFuncGetAttribute(name, function))
                for name in (
                    attribute.CU_FUNC_ATTRIBUTE_NUM_REGS,
                    attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                    attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                )
            ]
            assert told == [kernel.registers, kernel.local_bytes, kernel.shared_bytes]
            room = architecture.device.shared_bytes_per_block - kernel.shared_bytes
            for dynamic in {min(size, room) for size in (0, 10_000, 40_000, 100_000, 180_000)}:
                answer(
                    *driver.cuFuncSetAttribute(
                        function, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic
                    )
                )
                for threads in (32, 96, 128, 320, 512, 1024):
                    launch = Launch("kernel", (1, 1, 1), (threads, 1, 1), dynamic, ())
                    blocks = answer(
                        *driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, dynamic)
                    )
                    ours = occupancy(architecture, threads, kernel.registers, kernel.shared_bytes + dynamic)
                    refused = why_refused(architecture, launch, kernel.registers, kernel.shared_bytes, None)
                    case = (live, part, dynamic, threads, kernel, refused)
                    assert (0 if refused else ours.blocks) == blocks, case
                    compared.add((blocks, None if refused else ours.limit))
            answer(*driver.cuModuleUnload(module))
    assert len(compared) > 10
