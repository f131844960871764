"""portable_reduce.h: every atomic on every type runs on the CPU, and compiles for CUDA."""

import numpy as np
import pytest

from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.source_text import perturbed, read_source, render
from autotune.core.c_types import C_TYPES
from autotune.core.records import Launch
from autotune.devices import backend

SOURCE = """
#include "portable.h"
#include "portable_reduce.h"

KERNEL combine(GLOBAL const DTYPE *values, GLOBAL DTYPE *results)
{
    SHARED DTYPE cells[5];
    const unsigned int i = BLOCK_INDEX(x) * BLOCK_EXTENT(x) + THREAD_INDEX(x);
    if (THREAD_INDEX(x) < 5)
        cells[THREAD_INDEX(x)] = results[THREAD_INDEX(x)];
    BARRIER();
    const DTYPE value = SHUFFLE_XOR(SHUFFLE_UP(values[i], 0), 0);
    ATOMIC_ADD(results, value);
    ATOMIC_ADD(&cells[0], value);
    ATOMIC_MIN(results + 1, value);
    ATOMIC_MIN(&cells[1], value);
    ATOMIC_MAX(results + 2, value);
    ATOMIC_MAX(&cells[2], value);
#if INTEGER
    ATOMIC_AND(results + 3, value);
    ATOMIC_AND(&cells[3], value);
    ATOMIC_OR(results + 4, value);
    ATOMIC_OR(&cells[4], value);
#endif
    BARRIER();
    if (THREAD_INDEX(x) < 5)
        results[5 + THREAD_INDEX(x)] = cells[THREAD_INDEX(x)];
}
"""
DTYPES = ("int32", "uint32", "int64", "uint64", "float32", "float64")
COUNT = 64


def text_of(folder, dtype):
    (folder / "combine.cu").write_text(SOURCE)
    macros = {"DTYPE": C_TYPES[dtype], "INTEGER": int(np.dtype(dtype).kind in "iu")}
    return render(read_source(folder / "combine.cu"), macros)


@pytest.mark.parametrize("dtype", DTYPES)
def test_it_compiles_for_cuda(dtype, tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc")
    for architecture in ("sm_75", "sm_90"):
        binary = cuda_compiler(architecture).compile(text_of(tmp_path, dtype), ())
        assert binary.registers > 0 and not binary.log


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_cpu_computes_what_numpy_does(dtype, tmp_path):
    number = next((n for n, one in enumerate(backend("opencl").list_devices()) if one.kind == "cpu"), None)
    if number is None:
        pytest.skip("no CPU under OpenCL")
    device = backend("opencl").open_device(number)
    binary = backend("opencl").open_compiler(number).compile(text_of(tmp_path, dtype), ())
    values = np.random.default_rng(1).integers(1, 100, COUNT).astype(dtype)
    if np.dtype(dtype).kind != "u":
        values[::3] *= -1
    first = np.array([0, 50, 0, 127, 0] + [0] * 5, dtype)
    arrays = {"values": device.allocate(values.nbytes), "results": device.allocate(first.nbytes)}
    device.write(arrays["values"], values.view(np.uint8))
    device.write(arrays["results"], first.view(np.uint8))
    step = Launch("combine", (1, 1, 1), (COUNT, 1, 1), 0, ("values", "results"))
    device.run(device.load(binary), [step], arrays)
    found = device.read(arrays["results"], first.nbytes).view(dtype)
    expected = [values.sum(), min(50, values.min()), max(0, values.max())]
    if np.dtype(dtype).kind in "iu":
        expected += [np.bitwise_and.reduce(values) & 127, np.bitwise_or.reduce(values)]
    for start in (0, 5):
        assert found[start : start + len(expected)].tolist() == expected


WARPS = """
#define WARPS 1
#include "portable.h"
#include "portable_reduce.h"

KERNEL shuffled(GLOBAL const int *x, GLOBAL int *down, GLOBAL int *up, GLOBAL int *crossed)
{
    const unsigned int i = BLOCK_INDEX(x) * BLOCK_EXTENT(x) + THREAD_INDEX(x);
    int sum = x[i];
    for (int distance = WARP_SIZE / 2; distance > 0; distance /= 2)
        sum += SHUFFLE_DOWN(sum, distance);
    down[i] = sum;
    up[i] = SHUFFLE_UP(x[i], 1);
    crossed[i] = SHUFFLE_XOR(x[i], 5);
    WARP_BARRIER();
}
"""


@pytest.mark.parametrize("seed", [None, 1, 2], ids=["as it is", "from the end", "from both ends"])
def test_warps_of_the_cpu_shuffle_as_those_of_a_gpu_under_every_schedule(seed, tmp_path):
    devices = backend("opencl").list_devices()
    number = next((n for n, one in enumerate(devices) if one.has_shuffle), None)
    if number is None:
        pytest.skip("no OpenCL device with sub-groups")
    (tmp_path / "shuffled.cu").write_text(WARPS)
    text = render(read_source(tmp_path / "shuffled.cu"), {})
    binary = backend("opencl").open_compiler(number).compile(perturbed(text, seed) if seed else text, ())
    device = backend("opencl").open_device(number)
    names, x = ("x", "down", "up", "crossed"), np.arange(3 * 96, dtype=np.int32) ** 2
    arrays = {name: device.allocate(x.nbytes) for name in names}
    device.write(arrays["x"], x.view(np.uint8))
    device.run(device.load(binary), [Launch("shuffled", (3, 1, 1), (96, 1, 1), 0, names)], arrays)
    found = {name: device.read(arrays[name], x.nbytes).view(np.int32).reshape(-1, 32) for name in names}
    warps = x.reshape(-1, devices[number].warp_size)
    assert np.array_equal(found["down"][:, 0], warps.sum(1))
    assert np.array_equal(found["up"][:, 1:], warps[:, :-1])
    assert np.array_equal(found["crossed"], warps[:, np.arange(32) ^ 5])
