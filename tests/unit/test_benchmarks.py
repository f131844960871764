"""Every script of benchmarks/ and examples/ runs in its smallest form, so that none rots.

mypy reads all of them, those that need a GPU too: `tests/unit/test_static_checks.py`.
"""

import os
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.recorded_files import T4

ROOT = Path(__file__).parents[2]
FILES = (*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "examples").glob("*.py"))
PARTS = ("installed", "mutant_verifier", "replay", "replay_score", "waiting_kernel")  # of scripts
SCRIPTS = sorted(file for file in FILES if file.stem not in PARTS)
GPU_PACKAGES = ("cupy", "torch", "pycuda")
HAS_GPU = Path("/dev/nvidiactl").exists()
RECORDED = "recorded/convolution/A100_T4.json"
SMALLEST = {  # the others are asked for their help: they need a GPU, a browser or hours
    "call_overhead": "--calls 5 --rounds 2 --starts 0",
    "carry_over": "recorded",
    "chaos": "--searches 1 --budget 20",
    "cuda_backends": "--backends opencl:0 opencl:0 --configurations 1 --rounds 2 --size 4096",
    "failing_space": f"{RECORDED} -o failing_T4.json",
    "foreign_sources": ". --list",
    "gpu_faults": "--device fake --health",
    "half_precision": "--compile --only matmul_bf16 dot_f16",
    "kills": "--kills 1",
    "loader": "--runs 1 --kernels 2 --gpus 2",
    "noise": "double.yaml --device fake --pairs 1 --budget 3",
    "stopping_estimate": "recorded --seeds 1",
    "planted_mistakes": "--only signature",
    "production_opencl": "",
    "mutants": "--sample --pairwise 4",
    "search_efficiency": f"{RECORDED} --budget 12 --seeds 1 --searchers surrogate random",
    "side_by_side": "double.yaml --device fake --at-once 2 --searches 2 --budget 2",
    "size_sweep": "double.yaml --device fake --range n=500:1000:x2 --dtypes int32 --budget 6 --own-budget 3 "
    "--left-out 1",
    "space_construction": "--spaces convolution",
    "summation_order": "1000",
    "unsteady": "--searches 1 --only drift",
    "versus": "found --only",
    "whole_processes": "kept --device opencl:0 --only leak --budget 2",
    "speculation": f"{RECORDED} --budget 12 --seeds 1",
}
SLOW = ("cuda_backends", "kills", "mutants", "size_sweep", "whole_processes")  # in `.ci/benchmarks`


def needs_gpu(script):
    return any(f"import {package}" in script.read_text() for package in GPU_PACKAGES)


def of(scripts):
    marks = dict.fromkeys(SLOW, pytest.mark.wide)
    known = [pytest.param(script, marks=marks.get(script.stem, ()), id=script.stem) for script in scripts]
    return pytest.mark.parametrize("script", known)


@of(SCRIPTS)
def test_it_runs(script, folder, monkeypatch, capfd):
    """In this process, which has most of what they import already."""
    for package in GPU_PACKAGES:
        if f"import {package}" in script.read_text() and (find_spec(package) is None or not HAS_GPU):
            pytest.skip(f"needs an NVIDIA GPU and {package}")
    write_recordings(folder.path / "recorded" / "convolution")
    monkeypatch.chdir(folder.path)
    monkeypatch.syspath_prepend(script.parent)
    monkeypatch.setattr(sys, "argv", [str(script), *SMALLEST.get(script.stem, "--help").split()])
    with patch.dict(os.environ, PYTHONPATH=str(ROOT)):  # some set variables
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as ended:
            assert not ended.code
    assert capfd.readouterr().out


def test_every_entry_is_a_script():
    assert SMALLEST.keys() <= {script.stem for script in SCRIPTS}


def write_recordings(path):
    """The excerpt as if three GPUs had recorded it."""
    path.mkdir(parents=True)
    for gpu in ("A100", "A4000", "W6600"):
        (path / f"{gpu}_T4.json").write_text(T4.read_text())
