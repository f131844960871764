"""The hardware's estimate of a division is 0 for divisors from 2^126 to 2^128: the comparison finds it."""

import json

import pytest

from tests.conftest import run_in_process
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu

KERNEL = """
__global__ void ratio(const float *x, const float *divisors, float *y, int n)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    const float a = MAGNITUDE * x[i], b = MAGNITUDE * divisors[i];
    y[i] = INTRINSIC ? __fdividef(a, b) : a / b;
}
"""
SPACE = """
schema: 1
kernel: ratio
dialect: cuda
source: ratio.cu
reference: ratio.py
sizes: {default: {n: 4096}}
parameters: {INTRINSIC: [false, true], MAGNITUDE: [1.0, 1.0e+38]}
default: {INTRINSIC: false, MAGNITUDE: 1.0}
landmarks:
  ieee: {}
  ieee_large: {MAGNITUDE: 1.0e+38}
  intrinsic: {INTRINSIC: true}
  intrinsic_large: {INTRINSIC: true, MAGNITUDE: 1.0e+38}
arguments:
  - {name: x, dtype: float32, shape: [n], role: in, fill: {uniform: [1, 1.5]}}
  - {name: divisors, dtype: float32, shape: [n], role: in, fill: {uniform: [1, 1.5]}}
  - {name: y, dtype: float32, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: ratio, grid: ["ceil_div(n, 256)"], block: [256], arguments: [x, divisors, y, n]}
verify: {rtol: 1e-6, atol: 0}
"""
REFERENCE = "def reference(inputs, sizes):\n    return {'y': inputs['x'] / inputs['divisors']}\n"


def test_the_intrinsic_division_by_large_numbers_is_found_wrong(tmp_path):
    devices_here("cuda")
    for name, text in (("ratio.cu", KERNEL), ("ratio.yaml", SPACE), ("ratio.py", REFERENCE)):
        (tmp_path / name).write_text(text)
    done = run_in_process(tmp_path, "run", "ratio.yaml", "--landmarks", "--device", "cuda:0", "--json")
    steps = {one["step"]: (one["status"], one["detail"]) for one in json.loads(done.stdout)}
    assert [status for status, _ in steps.values()] == ["ok", "ok", "ok", "wrong_result"]
    assert steps["intrinsic_large"][1].startswith("y[0] is 0.0, expected 1."), steps
