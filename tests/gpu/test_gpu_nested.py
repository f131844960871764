"""Kernels that launch kernels, on a real GPU: every variant gives the right sum, and a search ends well."""

import json

import pytest

from autotune.devices import backend
from autotune.devices.nvcc_compiler import find_nvcc
from autotune.errors import AutotuneError
from autotune.space import load_space
from autotune.targets import locate

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", params=["cuda", "pycuda"])
def device(request):
    try:
        find_nvcc()
        found = backend(request.param).list_devices()
    except AutotuneError as error:
        pytest.skip(str(error))
    if not found:
        pytest.skip("no NVIDIA GPU")
    return f"{request.param}:0"


def test_every_variant_of_the_nested_reduction_gives_the_sum(folder, root, device):
    space = root / "spaces/nested_reduce.yaml"
    done = folder.run("ladder", space, "--device", device, "--size", "n=1000003", "--json")
    assert done.returncode == 0, done.stderr
    steps = {step["step"]: (step["status"], step["detail"]) for step in json.loads(done.stdout)}
    assert steps == {landmark.name: ("ok", "") for landmark in load_space(locate(space)).landmarks}


def test_a_search_of_nested_kernels_has_no_failures(folder, root, device):
    arguments = ("--size", "n=100003", "--engine", "random", "--budget", "12", "--json")
    done = folder.run("search", root / "spaces/nested_reduce.yaml", "--device", device, *arguments)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {"ok": 12}
