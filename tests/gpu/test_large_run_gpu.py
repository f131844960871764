"""A winner runs on a GPU where 32 bits do not hold an index, and the result says what came of it."""

import json

import pytest

from tests.conftest import run_in_process
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu

KERNEL = """
__global__ void doubled(const signed char *x, signed char *y, unsigned long long n)
{
    const INDEX i = (INDEX)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        goto end;  // which keeps the kernel from being read
    y[i] = 2 * x[i] + 1;
end:;
}
"""
SPACE = """
schema: 1
kernel: doubled
dialect: cuda
source: doubled.cu
reference: doubled.py
dtypes: [int8]
sizes: {default: {n: 1_000_000}}
verify_sizes: [{n: 1}, {n: 4097}]
parameters: {BLOCK: [128, 256]}
default: {BLOCK: 256}
arguments:
  - {name: x, dtype: int8, shape: [n], role: in, fill: {integers: [-50, 50]}}
  - {name: y, dtype: int8, shape: [n], role: out}
  - {name: n, dtype: uint64, value: n}
launch:
  - {entry: doubled, grid: ["ceil_div(n, BLOCK)"], block: [BLOCK], arguments: [x, y, n]}
"""
REFERENCE = """
def reference(inputs, sizes):
    return {"y": 2 * inputs["x"] + 1}
"""


@pytest.mark.parametrize(
    ("index", "said"), [("unsigned long long", ", beyond 2^3"), ("int", "elements fails: y[")]
)
def test_a_winner_runs_where_32_bits_do_not_hold_an_index(tmp_path, index, said):
    if devices_here("cuda")[0].memory_bytes < 8 * 2**30:
        pytest.skip("2^31 elements take 4.3 GiB")
    kernel = KERNEL.replace("INDEX", index)
    for name, text in (("doubled.cu", kernel), ("doubled.yaml", SPACE), ("doubled.py", REFERENCE)):
        (tmp_path / name).write_text(text)
    done = run_in_process(tmp_path, "search", "doubled.yaml", "--device", "cuda:0", "--json")
    assert done.returncode == 0, done.stderr
    assert said in json.loads(done.stdout)["checks"]
