"""A Triton kernel fails in six ways: each costs one trial, and the right configuration wins."""

import json

import pytest

from tests.conftest import Folder
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu
pytest.importorskip("triton", reason="needs the extra triton")

KERNEL = """\
import triton
import triton.language as tl


@triton.constexpr_function
def kill_the_compiler():
    import os  # Triton refuses functions of other modules

    os.abort()


@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr, FAULT: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = 2 * tl.load(x + at, mask=at < n)
    if FAULT == 1:
        values += 1
    if FAULT == 2:
        tile = tl.arange(0, 256)[:, None] * 256 + tl.arange(0, 256)[None, :]
        tl.store(y + tile, tl.load(x + tile).T)
    if FAULT == 3:
        old = 1
        while old != 0:
            old = tl.atomic_max(y, 1) | 1
    if FAULT == 4:
        tl.static_assert(False, "refused")
    if FAULT == 5:
        at += 2**29
    if FAULT == 6:
        at += kill_the_compiler()
    tl.store(y + at, values, mask=at < n + (2**30 if FAULT == 5 else 0))
"""
REFERENCE = """\
def reference(inputs, sizes):
    return {"y": 2 * inputs["x"]}
"""
SPACE = """\
schema: 1
kernel: scale
dialect: triton
source: scale.py
reference: reference.py
sizes: {default: {n: 100000}}
verify_sizes: [{n: 17}]
dtypes: [int32]
parameters: {FAULT: [0, 1, 2, 3, 4, 5, 6], BLOCK: [256]}
derived: {num_warps: 32 if FAULT == 2 else 4}
default: {FAULT: 0, BLOCK: 256}
arguments:
  - {name: x, dtype: int32, shape: [n], role: in, fill: {integers: [-100, 100]}}
  - {name: y, dtype: int32, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: scale, grid: ["ceil_div(n, BLOCK)"], arguments: [x, y, n]}
verify: {rtol: 0, atol: 0}
work: {bytes: 8 * n}
"""
EXPECTED = {0: {"ok"}, 1: {"wrong_result"}, 2: {"launch_error"}, 3: {"timeout"}, 4: {"compile_error"}}
EXPECTED |= {5: {"crashed", "launch_error", "out_of_bounds", "wrong_result"}}  # far outside: mapped or not
EXPECTED |= {6: {"compile_error"}}


def test_each_failure_costs_one_trial(folder: Folder):
    devices_here("cuda")
    for name, text in (("scale.py", KERNEL), ("reference.py", REFERENCE), ("scale.yaml", SPACE)):
        (folder.path / name).write_text(text)
    options = ("--device", "cuda:0", "--budget", "7", "--timeout", "10", "--journal", "j.jsonl", "--quiet")
    found = folder.run("search", "scale.yaml", *options)
    assert found.returncode == 0, found.stderr
    rows = [json.loads(line) for line in (folder.path / "j.jsonl").read_text().splitlines()]
    trials = [row["trial"] for row in rows if "trial" in row]
    statuses = {trial["config"]["FAULT"]: trial["status"] for trial in trials}
    assert len(trials) == len(EXPECTED)
    assert all(statuses[fault] in allowed for fault, allowed in EXPECTED.items()), statuses
