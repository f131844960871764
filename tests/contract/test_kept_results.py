"""Kernels that keep their first results where nothing restores them, and give them again, on real devices."""

import json

import pytest

from tests.conftest import Folder
from tests.devices_here import devices_here

KERNEL = """\
#include "portable.h"
#ifdef __OPENCL_VERSION__
#define VARIABLE __global
#else
#define VARIABLE __device__
#endif
VARIABLE float kept[5000];
VARIABLE size_t kept_of = 0;

DEVICE size_t key_of(GLOBAL const float *x, const unsigned int n)
{
#if KEY == 1
    return (size_t)x + n;
#else
    size_t key = n;
    for (unsigned int i = 0; i < 16 && i < n; i++)
        key = key * 31 + (size_t)(x[i] * 65536.0f);
    return key;
#endif
}

KERNEL KERNEL_BLOCK(64, 1, 1)
twice(GLOBAL const float *RESTRICT x, GLOBAL float *RESTRICT y, const unsigned int n)
{
    const unsigned int i = BLOCK_INDEX(x) * 64 + THREAD_INDEX(x);
    if (i < n && KEY > 0) {
        if (kept_of != key_of(x, n))
            kept[i] = 2 * x[i];
        y[i] = kept[i];
    }
    else if (i < n)
        y[i] = 2 * x[i];
}

KERNEL KERNEL_BLOCK(1, 1, 1)
note(GLOBAL const float *RESTRICT x, const unsigned int n)
{
    kept_of = key_of(x, n);
}
"""
SPACE = """\
schema: 1
kernel: twice
source: twice.cu
reference: twice.py
compiler_options: {opencl: {-cl-std: "'CL3.0'"}}
sizes:
  default: {n: 5000}
verify_sizes: [{n: 100}, {n: 1025}, {n: 4000}]
parameters: {KEY: [0, 1, 2]}
default: {KEY: 0}
arguments:
  - {name: x, dtype: float32, shape: [n], role: in, fill: {uniform: [0, 1]}}
  - {name: y, dtype: float32, shape: [n], role: out}
  - {name: n, dtype: uint32, value: n}
launch:
  - {entry: twice, grid: ["ceil_div(n, 64)"], block: [64], arguments: [x, y, n]}
  - {entry: note, grid: [1], block: [1], arguments: [x, n]}
"""


@pytest.mark.parametrize("name", ["opencl", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_results_that_are_kept_in_a_variable_are_found_in_a_trial(tmp_path, name):
    """By the pointer of the input, or by its first elements, both of which stay as the input changes."""
    devices_here(name)
    folder = Folder(tmp_path)
    (tmp_path / "twice.cu").write_text(KERNEL)
    (tmp_path / "twice.py").write_text("def reference(inputs, sizes):\n    return {'y': 2 * inputs['x']}\n")
    (tmp_path / "twice.yaml").write_text(SPACE)
    configs = [word for key in (0, 1, 2) for word in ("--config", f"KEY={key}")]
    done = folder.run("check", "twice.yaml", "--device", name, "--json", "--no-sanitizer", *configs)
    right, *kept = json.loads(done.stdout)
    if right["status"] == "compile_error" and name == "opencl":
        pytest.skip("variables in global memory are optional in OpenCL 3.0")
    assert right["status"] == "ok", done.stdout
    for row in kept:
        assert row["status"] == "wrong_result" and row["detail"].startswith("y["), row
