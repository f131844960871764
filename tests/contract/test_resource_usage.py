"""What is read from a cubin equals what the compiler itself reports, kernel by kernel."""

import random
import re
import struct
from pathlib import Path

import pytest

from autotune.compilers.nvrtc import CudaCompiler, cubin_binary
from autotune.compilers.resource_usage import _spilled, read_pointers, read_resources
from autotune.compilers.source_text import read_source, render
from autotune.core.launch_plan import macros
from autotune.devices.cuda_arrays import DIRTY_SOURCE, comparison_source
from autotune.space import load_space

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
NVCC = Path(__file__).parents[1] / "golden/nvcc"  # binaries for machines without it
REDUCE = Path(__file__).parents[2] / "spaces/reduce.yaml"
LANDMARKS = ("reduce0_global_atomic", "reduce5_add_on_load", "persistent_wide_loads")
KERNELS = """
extern "C" __global__ void plain(float* x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void shares(float* x, int n) {
    __shared__ float part[1000];
    part[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = part[(threadIdx.x + n) % 1000];
}
extern "C" __global__ void __launch_bounds__(128, 8) spills(float* x, int n) {
    float a[64];
    for (int i = 0; i < 64; i++) a[i] = x[i * n + threadIdx.x];
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 64; i++) a[i] = a[i] * a[(i * 7 + 3) % 64] + x[i + k];
    for (int i = 0; i < 64; i++) x[i * n + threadIdx.x] = a[i];
}
extern "C" __global__ void indexes(float* x, int n) {
    float a[64];
    for (int i = 0; i < 64; i++) a[i] = x[i * n];
    for (int i = 0; i < n; i++) a[(int)x[i] & 63] += 1;
    x[0] = a[n & 63];
}
"""
REPORT = re.compile(
    r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores"
    r".*?Used (\d+) registers([^\n]*)",
    re.DOTALL,
)


def reported(log):
    """Registers, stack, spills and shared memory of each kernel, in the words of ptxas."""
    found = {}
    for name, stack, spills, registers, rest in REPORT.findall(log):
        shared = re.search(r"(\d+) bytes smem", rest)
        found[name] = (int(registers), int(stack), int(spills), int(shared[1]) if shared else 0)
    return found


def read(binary):
    kernels = read_resources(binary.data)
    return {
        name: (item.registers, item.local_bytes, item.spill_bytes, item.shared_bytes)
        for name, item in kernels.items()
    }


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_kernels_of_every_kind(architecture):
    binary = CudaCompiler(architecture).compile(KERNELS, ("--ptxas-options=-v",))
    kernels = read(binary)
    assert kernels == reported(binary.log) and len(kernels) == 4
    _, stack, spilled, _ = kernels["spills"]
    assert spilled > 0 and stack > 0
    assert kernels["indexes"][1:3] == (256, 0)  # an array in local memory is no spill
    assert kernels["shares"][3] == 4000
    assert (binary.registers, binary.spill_bytes, binary.shared_bytes) == tuple(
        max(item[field] for item in kernels.values()) for field in (0, 2, 3)
    )
    bounds = {name: item.max_threads for name, item in read_resources(binary.data).items()}
    assert bounds == {"plain": None, "shares": None, "indexes": None, "spills": 128}


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90", "sm_100"])
def test_the_reduction(architecture):
    spec = load_space(REDUCE)
    source, compiler = read_source(spec.source), CudaCompiler(architecture)
    configs = {landmark.name: landmark.config for landmark in spec.landmarks}
    for name in LANDMARKS:
        text = render(source, macros(spec.parameters, configs[name], "float32"))
        binary = compiler.compile(text, ("--ptxas-options=-v", "--maxrregcount=24"))
        assert read(binary) == reported(binary.log), name
        assert "reduce" in read(binary)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_what_nvcc_links_is_read_on_both_sides_of_hopper(architecture):
    """Before it, a kernel's address and that of an array's element are in sections of different forms."""
    data = (NVCC / f"{architecture}.cubin").read_bytes()
    scale, swap = "_Z5scaleILi3EEvPf", "_Z4swapIfEvPT_"
    assert read_pointers(data) == {"first_kernel": scale, "second_kernel": swap, "second": "table"}
    shared = {name: item.shared_bytes for name, item in read_resources(data).items()}
    assert shared == {scale: 0, swap: 1024}  # without what Hopper's system reserves


def test_what_is_no_cubin_is_refused_and_a_binary_of_it_says_nothing():
    data = CudaCompiler("sm_90").compile(KERNELS, ()).data
    for broken in (b"", b"\x7fELF", data[:200], data[: len(data) // 2], b"PK" + data[2:]):
        with pytest.raises(ValueError, match="not a cubin"):
            read_resources(broken)
        binary = cubin_binary(broken, "", 1.0, {})
        assert (binary.registers, binary.spill_bytes, binary.shared_bytes) == (None, None, None)


def test_damage_is_a_value_error_or_goes_unnoticed():
    data = CudaCompiler("sm_90").compile(KERNELS, ()).data
    generator = random.Random(0)
    refused = 0
    for _ in range(500):
        damaged = bytearray(data)
        for _ in range(generator.choice((1, 5, 50))):
            heads = generator.randrange(64), generator.randrange(len(data) - 64 * 40, len(data))
            damaged[generator.choice((*heads, generator.randrange(len(data))))] = generator.randrange(256)
        try:
            read_resources(bytes(damaged))
        except ValueError:
            refused += 1
    assert 0 < refused < 500


@pytest.mark.parametrize("item_bytes", [1, 2, 4, 8])
def test_the_comparison_keeps_its_elements_in_registers(item_bytes):
    """In local memory they take twice as long, and so does the flush, which is a comparison."""
    binary = CudaCompiler("sm_90").compile(comparison_source(item_bytes), ())
    assert read_resources(binary.data)["compare"].local_bytes == 0


def test_what_fills_the_memory_of_threads_is_not_optimised_away():
    binary = CudaCompiler("sm_90").compile(DIRTY_SOURCE, ())
    assert read_resources(binary.data)["dirty"].local_bytes >= 256


@pytest.mark.parametrize(("width", "size_bytes"), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (5, 8), (6, 16)])
def test_spilled_stores_have_every_width_of_the_instruction(width, size_bytes):
    store = struct.pack("<QQ", 0x387, width << 9)
    assert _spilled((1, 16, 1, 0, 2, 0), bytes(16) + store) == size_bytes
