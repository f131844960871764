"""The Triton kernels compute what numpy does: on the CPU, in Triton's interpreter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs the extra triton")

PROGRAM = Path(__file__).with_name("triton_interpreted.py")


def test_every_kernel_agrees_with_its_reference():
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 13
    assert {name: error for name, error in found.items() if not error < 0.02} == {}  # NaN is not less, either
