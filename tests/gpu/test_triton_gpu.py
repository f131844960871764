"""Triton kernels on a GPU: a small search of each space, and calls by `load_kernel` beside numpy."""

import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from autotune import load_kernel
from autotune.errors import InputError
from autotune.triton import tuned
from tests.conftest import Folder
from tests.devices_here import devices_here

pytestmark = pytest.mark.gpu
pytest.importorskip("triton", reason="needs the extra triton")

SPACES = Path(__file__).parents[2] / "spaces"
SIZES = {
    "triton_reduce": {"n": 100_000},
    "triton_matmul": {"m": 272, "n": 528, "k": 144},
    "triton_matmul_float8": {"m": 272, "n": 528, "k": 144},
    "triton_softmax": {"m": 40, "n": 2000},
    "triton_layer_norm": {"m": 40, "n": 2000},
    "triton_attention": {"heads": 2, "n": 300, "d": 64},
}


@pytest.fixture(autouse=True)
def gpu():
    devices_here("cuda")


@pytest.mark.parametrize("kernel", SIZES)
def test_a_search_finds_a_right_configuration(kernel, folder: Folder):
    sizes = [word for name, size in SIZES[kernel].items() for word in ("--size", f"{name}={size}")]
    found = folder.run(
        *("search", SPACES / f"{kernel}.yaml", "--device", "cuda:0", "--budget", "6", "--quiet"), *sizes
    )
    assert found.returncode == 0, found.stderr
    assert "wrong" not in (found.stdout + found.stderr).lower()


@pytest.mark.parametrize("kernel", ["triton_matmul", "triton_matmul_float8", "triton_attention"])
def test_every_landmark_is_right(kernel, folder: Folder):
    sizes = [word for name, size in SIZES[kernel].items() for word in ("--size", f"{name}={size}")]
    found = folder.run(
        "run", SPACES / f"{kernel}.yaml", "--landmarks", "--device", "cuda:0", "--json", *sizes
    )
    assert found.returncode == 0, found.stderr
    statuses = {step["step"]: (step["status"], step["detail"]) for step in json.loads(found.stdout)}
    assert {name: what for name, what in statuses.items() if what[0] not in ("ok", "pruned")} == {}


def test_a_kernel_with_scratch_memory_is_called_from_several_streams(folder: Folder):
    torch = pytest.importorskip("torch")
    text = (SPACES / "triton_matmul.yaml").read_text().replace("../kernels", str(SPACES.parent / "kernels"))
    text = re.sub(r"ALGORITHM: \[.*?\]", "ALGORITHM: [persistent]", text)
    text = text.replace("{ALGORITHM: pointers, ", "{ALGORITHM: persistent, ")
    text = re.sub(r"^landmarks:.*?(?=^arguments:)", "", text, flags=re.MULTILINE | re.DOTALL)
    folder.space.write_text(text)
    sizes = [word for name in "mnk" for word in ("--size", f"{name}=256")]
    found = folder.run("search", folder.space, "--device", "cuda:0", "--budget", "2", "--quiet", *sizes)
    assert found.returncode == 0, found.stderr
    kernel = load_kernel("triton_matmul", cache=folder.path / "cache")
    streams = [torch.cuda.Stream() for _ in range(3)]
    a, b = (torch.randn(272, 272, device="cuda", dtype=torch.float16) for _ in range(2))
    torch.cuda.synchronize()
    results = []
    for _ in range(20):
        for stream in streams:
            with torch.cuda.stream(stream):
                results.append(kernel(a, b))
    torch.cuda.synchronize()
    for result in results:
        torch.testing.assert_close(result, torch.matmul(a, b), rtol=0.01, atol=0.05)


def test_a_product_of_float8_is_that_of_its_numbers(folder: Folder):
    torch = pytest.importorskip("torch")
    sizes = [word for name in "mnk" for word in ("--size", f"{name}=256")]
    space = SPACES / "triton_matmul_float8.yaml"
    found = folder.run("search", space, "--device", "cuda:0", "--budget", "4", "--quiet", *sizes)
    assert found.returncode == 0, found.stderr
    kernel = load_kernel("triton_matmul_float8", cache=folder.path / "cache")
    a, b = (torch.randn(256, 256, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    torch.testing.assert_close(kernel(a, b).double(), a.double() @ b.double().T, rtol=2**-10, atol=0.5)


def test_a_loaded_kernel_computes_what_numpy_does(folder: Folder):
    torch = pytest.importorskip("torch")
    arguments = ("--size", "m=64", "--size", "n=64", "--dtype", "float32", "--budget", "4", "--quiet")
    found = folder.run("search", SPACES / "triton_softmax.yaml", "--device", "cuda:0", *arguments)
    assert found.returncode == 0, found.stderr
    kernel = load_kernel("triton_softmax", cache=folder.path / "cache")
    for rows, columns in ((64, 64), (64, 64), (63, 65), (1, 1)):
        x = torch.randn(rows, columns, device="cuda")
        np.testing.assert_allclose(
            kernel(x).cpu().numpy(), torch.softmax(x, 1).cpu().numpy(), rtol=1e-5, atol=1e-7
        )
    whole = torch.randn(64 * 64 + 1, device="cuda")
    with pytest.raises(InputError, match="multiple of 16"):
        kernel(whole[1:].view(64, 64))


def test_the_decorator_launches_with_the_cached_constants(folder: Folder):
    torch, triton = pytest.importorskip("torch"), pytest.importorskip("triton")
    arguments = ("--size", "m=64", "--size", "n=64", "--dtype", "float32", "--budget", "4", "--quiet")
    found = folder.run("search", SPACES / "triton_softmax.yaml", "--device", "cuda:0", *arguments)
    assert found.returncode == 0, found.stderr
    sys.path.insert(0, str(SPACES.parent / "kernels"))
    softmax = importlib.import_module("triton_softmax").softmax
    x = torch.randn(64, 64, device="cuda")
    y = torch.empty_like(x)
    kernel = tuned("triton_softmax", cache=folder.path / "cache")(softmax)
    kernel[lambda meta: (triton.cdiv(64, meta["ROWS"]),)](x, y, 64, 64)
    torch.testing.assert_close(y, torch.softmax(x, 1))
