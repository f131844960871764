"""The kernels in Triton compute what their references do: on the CPU, in Triton's interpreter."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.analysis.host_run import run_on_host
from autotune.compilers.source_text import packaged
from autotune.space import load_space
from autotune.tuning.task import Target

pytest.importorskip("triton", reason="needs the extra triton")

PROGRAM = Path(__file__).with_name("triton_interpreted.py")


@pytest.mark.parametrize(
    "space", sorted(packaged("spaces").glob("triton_*.yaml")), ids=lambda path: path.stem
)
def test_every_step_of_a_ladder_agrees_with_its_reference(space):
    sizes = load_space(space).sizes["default"]  # for which the steps are valid
    found = run_on_host(
        Target(space, "interpreter", sizes), 600.0, at_tiles=False
    )  # few programs: it is one multiprocessor
    assert {run.name: run.outcome for run in found.runs if not run.is_as_expected} == {}
    assert found.uncompared == () and min(run.sizes for run in found.runs) > 1


def test_a_program_calls_a_kernel_under_tuned():
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
