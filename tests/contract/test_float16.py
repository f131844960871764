"""float16 and bfloat16 in the portable dialect: compiled as CUDA, run where a device has them."""

import json

import pytest

from autotune.compilers.nvrtc import CudaCompiler
from autotune.compilers.source_text import read_source, render
from autotune.core.launch_plan import macros
from tests.devices_here import devices_here

KERNEL = """
#include "portable.h"

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
scale(GLOBAL const DTYPE *RESTRICT x, GLOBAL DTYPE *RESTRICT y, const DTYPE factor, const unsigned long n)
{
    SHARED DTYPE cells[BLOCK_SIZE];
    const size_t i = (size_t)BLOCK_INDEX(x) * BLOCK_SIZE + THREAD_INDEX(x);
    DTYPE value = i < n ? LOAD_READ_ONLY(x + i) : (DTYPE)0;
    value *= factor;
    value += 1;
    VECTOR(DTYPE, 1) again = VECTOR_ZERO(DTYPE, 1);
    again -= -value * 2 / (DTYPE)2;
    cells[THREAD_INDEX(x)] = SHUFFLE_DOWN(again, 0);
    BARRIER();
    if (i < n && value == cells[THREAD_INDEX(x)] && LOAD_STREAMING(x + i) <= 100)
        STORE_STREAMING(y + i, value);
}
"""
SPACE = """
schema: 1
kernel: scale
source: scale.cu
reference: reference.py
sizes: {default: {n: 1001}}
verify_sizes: [{n: 127}, {n: 128}, {n: 129}]
dtypes: [float16]
parameters: {BLOCK_SIZE: [64, 128]}
default: {BLOCK_SIZE: 64}
arguments:
  - {name: x, dtype: DTYPE, shape: [n], role: in, fill: {integers: [-100, 100]}}
  - {name: y, dtype: DTYPE, shape: [n], role: out}
  - {name: factor, dtype: DTYPE, value: 3}
  - {name: n, dtype: uint64, value: n}
launch: [{entry: scale, grid: ['ceil_div(n, BLOCK_SIZE)'], block: [BLOCK_SIZE], arguments: [x, y, factor, n]}]
"""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_it_compiles_without_any_header_of_the_toolkit(tmp_path, architecture, dtype):
    (tmp_path / "scale.cu").write_text(KERNEL)
    values = {**macros((), {}, dtype), "BLOCK_SIZE": 64}
    binary = CudaCompiler(architecture).compile(render(read_source(tmp_path / "scale.cu"), values), ())
    assert binary.data[:4] == b"\x7fELF" and not binary.log


def test_a_source_with_half_arguments_only_finds_the_type_and_one_without_pays_nothing(tmp_path):
    path = tmp_path / "any.cu"
    for text, is_given in {
        "f(const half *x, float y)": True,
        "half cells[4];": True,
        "y = (half)1;": True,
        "#include <cuda_fp16.h>\nhalf x;": False,
        "/* the upper half of each, one half. */": False,
    }.items():
        path.write_text(text)
        assert ("PORTABLE_HALF_H" in render(read_source(path), {"DTYPE": "float"})) == is_given


@pytest.mark.parametrize(
    "name", ["opencl", *(pytest.param(name, marks=pytest.mark.gpu) for name in ("cuda", "pycuda"))]
)
def test_a_search_verifies_it(folder, name):
    devices_here(name)
    (folder.path / "scale.cu").write_text(KERNEL)
    (folder.path / "scale.yaml").write_text(SPACE)
    (folder.path / "reference.py").write_text(
        "def reference(inputs, sizes):\n    return {'y': 3 * inputs['x'].astype('float64') + 1}\n"
    )
    done = folder.run("search", "scale.yaml", "--device", f"{name}:0", "--json")
    if name == "opencl" and done.returncode == 1:
        assert "this OpenCL device does not compute in half precision (it has no cl_khr_fp16)" in done.stderr
        pytest.skip("the OpenCL device has no cl_khr_fp16")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {"ok": 2}
