"""The mathematical functions of the portable dialect compile for CUDA and for OpenCL, in either spelling."""

import re
from pathlib import Path

import pytest

from autotune.compilers.source_text import read_source, render
from autotune.devices import backend
from autotune.evaluation.compiler_pool import cuda_compiler

PAGE = Path(__file__).parents[2] / "docs" / "portable-dialect.md"
ARITY = {"POW": 2, "FMIN": 2, "FMAX": 2, "FMOD": 2, "ATAN2": 2, "HYPOT": 2, "FMA": 3}


def text_of(folder, dtype):
    """A kernel that calls each function that the documentation names."""
    (line,) = re.findall(r"mathematical functions[^:]*: ([^.]*)\.", PAGE.read_text(), re.MULTILINE)
    names = re.findall(r"`(\w+)`", line)
    assert {"SQRT", "RSQRT", "EXP", "FMA"} <= set(names)
    calls = [f"{name}({', '.join(['x'] * ARITY.get(name, 1))})" for name in names]
    body = "".join(f"    x += {call} - {call.lower()};\n" for call in calls)
    (folder / "mathematics.cu").write_text(
        '#include "portable.h"\nKERNEL mathematics(GLOBAL DTYPE *y)\n{\n    DTYPE x = y[0];\n'
        f"{body}    y[0] = x;\n}}\n"
    )
    return render(read_source(folder / "mathematics.cu"), {"DTYPE": dtype})


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_they_compile_for_cuda(dtype, tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc")
    assert not cuda_compiler("sm_90").compile(text_of(tmp_path, dtype), ()).log


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_they_compile_for_the_cpu(dtype, tmp_path):
    number = next((n for n, one in enumerate(backend("opencl").list_devices()) if one.kind == "cpu"), None)
    if number is None:
        pytest.skip("no CPU under OpenCL")
    assert backend("opencl").open_compiler(number).compile(text_of(tmp_path, dtype), ()).data
