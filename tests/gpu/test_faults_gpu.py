"""Faults on a real GPU: each costs one trial, and the GPU works on."""

import json
import os
import subprocess
import sys

import pytest

from autotune.evaluation.journal import read_trials
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu

KERNEL = """
__device__ int deep(int *x, int n)
{
    volatile int frame[64];
    frame[n % 64] = n;
    return n < 0 ? 0 : deep(x, n + 1) + frame[0];
}

extern "C" __global__ void double_all(int *x, int *y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
#if FAULT == FAULT_ILLEGAL_ACCESS
    *(volatile int *)(size_t)(16 + i * 4) = 1;
#elif FAULT == FAULT_MISALIGNED
    *(volatile long long *)((char *)y + 4 + i) = 1;
#elif FAULT == FAULT_ENDLESS
    while (*(volatile int *)x != 123456789) {}
#elif FAULT == FAULT_STACK_OVERFLOW
    y[0] = deep(x, n);
#elif FAULT == FAULT_TRAP
    asm volatile("trap;");
#elif FAULT == FAULT_CHANGE_INPUT
    if (i == 5) x[5] += 1;
#elif FAULT == FAULT_OUT_OF_BOUNDS
    if (i == 0) y[n] = 1;
#elif FAULT == FAULT_WRITE_NOTHING
    return;
#endif
    for (int repeat = 0; repeat < 500 / SPEED; ++repeat)
        for (int j = i; j < n; j += gridDim.x * blockDim.x)
            ((volatile int *)y)[j] = 2 * ((volatile int *)x)[j];
}
"""
SPACE = """
schema: 1
kernel: gpu_faults
dialect: cuda
source: kernel.cu
reference: reference.py
sizes: {default: {n: 1_000_000}}
dtypes: [int32]
parameters:
  FAULT: [none, illegal_access, misaligned, endless, stack_overflow, trap, change_input, out_of_bounds,
          write_nothing, too_many_threads, too_much_shared]  # the last two are not valid on any device
  SPEED: [1, 2, 5, 10, 50]
constraints: ['FAULT == "none" or SPEED == 50']
default: {FAULT: none, SPEED: 1}
arguments:
  - {name: x, dtype: int32, shape: [n], role: in, fill: {integers: [-100, 100]}}
  - {name: y, dtype: int32, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - entry: double_all
    grid: [256]
    block: ['4096 if FAULT == "too_many_threads" else 256']
    shared_bytes: '1_000_000 if FAULT == "too_much_shared" else 0'
    arguments: [x, y, n]
"""
EXPECTED = {
    "illegal_access": ("crashed", "ILLEGAL_ADDRESS"),
    "misaligned": ("crashed", "MISALIGNED_ADDRESS"),
    "endless": ("timeout", "did not end within 10 s"),
    "stack_overflow": ("crashed", ""),
    "trap": ("crashed", ""),
    "change_input": ("wrong_result", "changed its input x[5]"),
    "out_of_bounds": ("out_of_bounds", "wrote outside y"),
    "write_nothing": ("wrong_result", "y was never written"),
}


def test_every_fault_is_one_trial_and_the_gpu_works_on(tmp_path):
    devices_here("cuda")
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "reference.py").write_text(
        "def reference(inputs, sizes):\n    return {'y': 2 * inputs['x']}\n"
    )
    (tmp_path / "space.yaml").write_text(SPACE)
    command = [sys.executable, "-m", "autotune", "search", "space.yaml", "--device", "cuda:0", "--json"]
    limits = ["--timeout", "10", "--journal", "j.jsonl", "--engine", "random", "--seed", "1"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command + limits, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["config"] == {"FAULT": "none", "SPEED": 50}
    trials = read_trials(tmp_path / "j.jsonl")
    found = {trial.config["FAULT"]: (trial.status.value, trial.detail) for trial in trials}
    assert not found.keys() & {"too_many_threads", "too_much_shared"}  # limits of the device are constraints
    for fault, (status, words) in EXPECTED.items():
        assert found[fault][0] == status and words in found[fault][1], (fault, found[fault])
