"""What the real compute-sanitizer finds in kernels whose results are right."""

import json
from pathlib import Path

import pytest

from autotune.checks.device_sanitizer import TOOLS, Sanitizer, find_sanitizer
from autotune.core.outcomes import PASSED, first_failure
from autotune.core.records import Launch
from autotune.core.trials import Failure, Problem, Status
from autotune.devices import Address, backend
from autotune.evaluation.device_process import DeviceSetting, DeviceState, verify_once
from autotune.problem.workload import Array, Scalar, Workload
from autotune.processes.child import Child
from autotune.processes.deadline import Deadline
from tests.conftest import run_in_process
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu

GPU = Address("cuda", 0)
PROBLEM = Workload(
    Problem({"n": 64}, "float32"),
    (Array("x", "float32", (64,), "in", ("uniform", 0, 1)), Array("y", "float32", (64,), "out", None)),
    (Scalar("n", "int32", 64),),
    (Launch("twice", (1, 1, 1), (64, 1, 1), 0, ("x", "y", "n")),),
)
BEYOND_SHARED = """
    __shared__ float held[64];
    held[i] = x[i];
    if (((volatile float *)held)[i + 1000] == 12345.f) y[i] = 0;
"""
ONE_BEYOND = "if (((const volatile float *)x)[i + 1] == 12345.f) y[i] = 0;"
RACE = """
    __shared__ float held[64];
    held[i] = x[i];
    if (((volatile float *)held)[63 - i] == 12345.f) y[i] = 0;
"""
FAR_BEYOND = "if (((const volatile float *)x)[i + (1 << 28)] == 12345.f) y[i] = 0;"
MISALIGNED = "if (*(const volatile double *)((const char *)x + 4) == 12345.) y[i] = 0;"


@pytest.fixture(scope="module")
def program():
    devices_here("cuda")
    found = find_sanitizer(GPU)
    if found is None:
        pytest.skip("compute-sanitizer is not installed")
    return found


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    path = tmp_path_factory.mktemp("reference") / "reference.py"
    path.write_text("def reference(inputs, sizes):\n    return {'y': inputs['x'] * 2}\n")
    return path


def compiled(body):
    """A kernel that computes what it should, and does something else besides."""
    head = 'extern "C" __global__ void twice(const float *x, float *y, int n)'
    text = f"{head}\n{{\n    const int i = threadIdx.x;\n    y[i] = 2 * x[i];\n    {body}\n}}\n"
    return backend("cuda").open_compiler(0).compile(text, ())


def test_a_sound_kernel_comes_out_clean(program, reference):
    binary = compiled("")
    child = Child(
        DeviceState, DeviceSetting(GPU, reference, (PROBLEM,)), wrapper=(program, "--tool", "memcheck")
    )
    try:  # it works on this machine, or a clean verdict would say nothing
        assert not isinstance(child.call(verify_once, binary, PROBLEM, timeout_s=120), Failure)
        code, output = child.finish(60)
    finally:
        child.kill()
    assert code == 0 and "ERROR SUMMARY: 0 errors" in output
    found = Sanitizer(program, GPU, reference).check([(binary, (PROBLEM,))], Deadline())
    assert found == [dict.fromkeys(TOOLS, PASSED)]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (BEYOND_SHARED, Status.OUT_OF_BOUNDS, "Invalid __shared__ read of size 4 bytes"),
        (ONE_BEYOND, Status.OUT_OF_BOUNDS, "Invalid __global__ read of size 4 bytes"),
        (FAR_BEYOND, Status.OUT_OF_BOUNDS, "Invalid __global__ read of size 4 bytes"),
        (MISALIGNED, Status.OUT_OF_BOUNDS, "Invalid __global__ read of size 8 bytes"),
        (RACE, Status.WRONG_RESULT, "Potential RAW hazard detected at __shared__"),
    ],
    ids=["beyond shared memory", "one beyond", "far beyond", "misaligned", "race"],
)
def test_a_bad_access_is_found(program, reference, body, status, words):
    (found,) = Sanitizer(program, GPU, reference).check([(compiled(body), (PROBLEM,))], Deadline())
    failed = first_failure(found)
    assert failed.status is status
    assert failed.detail.startswith(f"compute-sanitizer found: {words}")


@pytest.mark.parametrize("name", ["leak", "transpose"])
def test_no_check_of_a_winner_is_left_out(tmp_path, program, name):
    space = Path(__file__).parents[2] / "spaces" / f"{name}.yaml"
    done = run_in_process(tmp_path, "search", str(space), "-d", "cuda:0", "--budget", "10", "--json")
    assert done.returncode == 0, done.stderr
    passed, _, left_out = json.loads(done.stdout)["checks"].partition("; without ")
    assert all(tool in passed for tool in TOOLS)
    assert not left_out or left_out.startswith(
        "sizes of its tiles ("
    )  # whose references take 3 s on a busy host
