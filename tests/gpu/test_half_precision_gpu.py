"""The kernels of examples/half_precision are right on a GPU, at all of their verify_sizes."""

import json

import pytest

from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu
SIZES = {"tensor_matmul": ("m=768", "n=1024", "k=512"), "dot": ("n=10_000_019",)}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kernel", SIZES)
def test_every_landmark_is_right(folder, root, kernel, dtype):
    devices_here("cuda")
    sizes = [part for size in SIZES[kernel] for part in ("--size", size)]
    space = root / "examples" / "half_precision" / f"{kernel}.yaml"
    done = folder.run("run", space, "--landmarks", "--device", "cuda:0", "--dtype", dtype, *sizes, "--json")
    assert done.returncode == 0, done.stderr
    steps = {step["step"]: (step["status"], step["detail"]) for step in json.loads(done.stdout)}
    assert steps and {status for status, _ in steps.values()} <= {"ok", "pruned"}, steps
