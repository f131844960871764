"""The worked examples of users' own kernels: those in CUDA compile, those in OpenCL C run on the CPU."""

from pathlib import Path

import numpy as np
import pytest

from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.source_text import read_source, render
from autotune.hardware.architectures import architecture
from autotune.space import bind, load_space, problem_of
from tests.conftest import run_in_process

FOLDER = Path(__file__).parents[2] / "examples" / "kernels"


@pytest.mark.parametrize("name", ["nbody", "spmv"])
def test_landmarks_and_the_last_configuration_compile(name):
    spec = load_space(FOLDER / f"{name}.yaml")
    device = architecture("sm_90").device
    space = bind(spec, device, problem_of(spec, device, {}, None))
    source, compiler = read_source(spec.source), cuda_compiler("sm_90")
    for config in (*(landmark.config for landmark in spec.landmarks), space.config(len(space) - 1)):
        names = space.symbol_names(space.launches(config))
        options = (*space.options(config, "cuda"), "--Ofast-compile=max")
        assert compiler.compile(render(source, space.macros(config)), options, names).symbols, config


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("histogram", ("--data", "text", "--size", "n=5000", "--config", "COPIES=4,GROUPS=16")),
        (
            "stencil",
            ("--size", "width=90", "--size", "height=70", "--config", "USE_LOCAL=true,ROWS_PER_ITEM=2"),
        ),
    ],
)
def test_a_configuration_is_right_on_the_cpu(name, words, tmp_path):
    done = run_in_process(tmp_path, "run", FOLDER / f"{name}.yaml", "--device", "opencl", *words)
    assert done.returncode == 0, done.stderr
    assert "verified   at " in done.stdout


@pytest.mark.parametrize("data", ["banded", "power_law"])
@pytest.mark.parametrize("sizes", [{"rows": 1, "per_row": 1}, {"rows": 100, "per_row": 7}])
def test_the_sparse_reference_is_the_product_with_the_whole_matrix(data, sizes, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import spmv

    drawn = spmv.inputs(sizes, np.random.default_rng(1), data)
    rows = np.repeat(np.arange(sizes["rows"]), np.diff(drawn["starts"]))
    matrix = np.zeros((sizes["rows"], sizes["rows"]))
    np.add.at(matrix, (rows, drawn["columns"]), drawn["values"])
    assert len(drawn["columns"]) == sizes["rows"] * sizes["per_row"]
    assert np.allclose(spmv.reference(drawn, sizes)["y"], matrix @ drawn["x"])


def test_the_bodies_reference_is_the_sum_over_all_pairs(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import nbody

    bodies = np.random.default_rng(1).random((9, 4), np.float32)
    asked = np.array([0, 5, 6, 35])
    offsets = bodies[None, :, :3] - bodies[:, None, :3].astype(np.float64)
    strength = bodies[None, :, 3] / ((offsets**2).sum(axis=2) + nbody.SOFTENING) ** 1.5
    pulls = np.concatenate(((strength[:, :, None] * offsets).sum(axis=1), np.zeros((9, 1))), axis=1)
    found = nbody.reference({"bodies": bodies}, {"n": 9}, {"accelerations": asked})["accelerations"]
    assert np.allclose(found, pulls.reshape(-1)[asked])
