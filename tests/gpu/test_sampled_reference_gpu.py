"""A reference that computes a sample: the sampled elements are read from the GPU's memory, page by page."""

import pytest

from autotune.evaluation.journal import read_trials
from tests.conftest import run_in_process
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu

KERNEL = """
__global__ void double_all(const int *x, int *y, int n)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    const bool large = n > 1000;
    if (i >= n || (WRONG == WRONG_ALL && large)) return;
    const bool last = WRONG == WRONG_LAST && large && i == n - 1;
    const bool part = WRONG == WRONG_PART && i / 10000 == 100;
    y[i] = 2 * x[i] + (last || part);
}
"""
SPACE = """
schema: 1
kernel: sampled
dialect: cuda
source: sampled.cu
reference: sampled.py
sizes: {default: {n: 4_000_001}}
verify_sizes: [{n: 1000}]
parameters: {WRONG: ["no", last, part, all]}
default: {WRONG: "no"}
arguments:
  - {name: x, dtype: int32, shape: [n], role: in, fill: {integers: [-100, 100]}}
  - {name: y, dtype: int32, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: double_all, grid: ["ceil_div(n, 256)"], block: [256], arguments: [x, y, n]}
"""
REFERENCE = """
def reference(inputs, sizes, indices):
    return {"y": 2 * inputs["x"][indices["y"]]}
"""


def test_what_is_wrong_in_the_sample_is_found_on_a_gpu(tmp_path):
    devices_here("cuda")
    for name, text in (("sampled.cu", KERNEL), ("sampled.yaml", SPACE), ("sampled.py", REFERENCE)):
        (tmp_path / name).write_text(text)
    command = (
        "search",
        "sampled.yaml",
        "--device",
        "cuda:0",
        "--journal",
        "j.jsonl",
        "--engine",
        "exhaustive",
    )
    done = run_in_process(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    found = {trial.config["WRONG"]: trial for trial in read_trials(tmp_path / "j.jsonl")}
    assert found["no"].time_ms is not None
    assert {found[name].status.value for name in ("last", "part", "all")} == {"wrong_result"}
    assert all("of a sample of 1,0" in found[name].detail for name in ("last", "part"))
    assert "y was never written" in found["all"].detail
