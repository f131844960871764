"""Kernels that launch kernels, on a real GPU: every variant gives the right sum, and a search ends well."""

import json
import warnings

import pytest

from autotune import StaleWarning, load_kernel
from autotune.compilers.nvcc import find_nvcc
from autotune.devices import backend
from autotune.errors import AutotuneError
from autotune.space import load_space
from autotune.tuning.task import find_space_file

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
    done = folder.run("run", space, "--landmarks", "--device", device, "--size", "n=1000003", "--json")
    assert done.returncode == 0, done.stderr
    steps = {step["step"]: (step["status"], step["detail"]) for step in json.loads(done.stdout)}
    assert steps == {landmark.name: ("ok", "") for landmark in load_space(find_space_file(space)).landmarks}


def test_the_tuned_kernel_is_loaded_with_its_own_compiler(device):
    torch = pytest.importorskip("torch")
    x = torch.ones(1_000_003, dtype=torch.int32, device="cuda")
    total = torch.zeros(1, dtype=torch.int32, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StaleWarning)
        load_kernel("nested_reduce")(x, total)
    assert total.item() == 1_000_003


def test_a_search_of_nested_kernels_has_no_failures(folder, root, device):
    arguments = ("--size", "n=100003", "--engine", "random", "--budget", "12", "--json")
    done = folder.run("search", root / "spaces/nested_reduce.yaml", "--device", device, *arguments)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {"ok": 12}
