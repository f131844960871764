"""PoCL reads only the declarations that a source needs, and makes the same machine code of it."""

import os
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import pyopencl as cl
import pytest

from autotune.compilers.kernel_source import read_source, render
from autotune.compilers.pocl_header import GUARD, pocl_header
from autotune.core.launch_plan import macros
from autotune.devices import cold_environment
from autotune.devices.opencl import OpenCLCompiler
from autotune.errors import CompileError
from autotune.space import load_space

ROOT = Path(__file__).parents[2]
BOTH = f"""
from pathlib import Path
from autotune.devices import cold_environment
from autotune.devices.opencl import OpenCLCompiler
source, compiler = Path("source.cl").read_text(), OpenCLCompiler(0)
short = compiler._header.prepended(source)
Path("whole").write_bytes(compiler._program(source, ["-cl-std=CL1.2"])[0])
Path("short").write_bytes(compiler._program(short, ["-cl-std=CL1.2", "-D{GUARD}"])[0])
"""
LOADED, EXECUTABLE = 1, 1  # of a segment: its type, and a flag
UNUSUAL = """
#define JOINED(type) convert_##type
__kernel void unusual(__global double *x, __global float8 *y, __global int *z)
{
    const size_t i = get_global_id(0);
    x[i] = fast_length(x[i] * 1e-300) + native_sin(y[i].s3) + log2(x[i]);
    y[i] = JOINED(float8)(vload8(i, z)) * length(y[i].lo) + mad24(z[i], 3, 1);
    z[i] = ilogb(x[i]) == FP_ILOGBNAN ? atomic_max(z, 4) : FP_ILOGB0;
}
"""


@pytest.fixture(scope="module")
def compiler():
    compiler = OpenCLCompiler(0)
    if pocl_header(compiler._device.platform.version) is None:
        pytest.skip("the OpenCL device is not the PoCL of the wheel")
    return compiler


def machine_code(binary):
    """The executable segments of the shared libraries in PoCL's binary, one library for each kernel."""
    libraries = [b"\x7fELF" + part for part in binary.split(b"\x7fELF")[1:]]
    return [code for library in libraries for code in executable_segments(library)]


def executable_segments(library):
    (table,) = struct.unpack_from("<Q", library, 0x20)
    size, count = struct.unpack_from("<HH", library, 0x36)
    for place in range(table, table + size * count, size):
        kind, flags, start = struct.unpack_from("<IIQ", library, place)
        (length,) = struct.unpack_from("<Q", library, place + 0x20)
        if kind == LOADED and flags & EXECUTABLE:
            yield library[start : start + length]


def reduction():
    spec = load_space(ROOT / "spaces/reduce.yaml")
    return render(read_source(spec.source), macros(spec.parameters, spec.default, "float32"))


@pytest.mark.parametrize("source", [UNUSUAL.replace("JOINED(float8)", "convert_float8"), reduction()])
@pytest.mark.usefixtures("compiler")
def test_the_machine_code_is_that_with_all_declarations(source, tmp_path):
    (tmp_path / "source.cl").write_text(source)
    # with a cache of its own: what other processes ran of a program is part of its binary
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | cold_environment(str(tmp_path))
    subprocess.run([sys.executable, "-c", BOTH], cwd=tmp_path, env=environment, check=True)
    short, whole = (machine_code((tmp_path / name).read_bytes()) for name in ("short", "whole"))
    assert short == whole != []


def test_a_source_that_joins_names_is_compiled_with_all_declarations(compiler):
    assert compiler.compile(UNUSUAL, ()).data


def test_names_in_options_are_declared(compiler):
    source = "__kernel void f(__global float *x) { x[0] = OP(x[1], x[2]); }"
    options = ["-DOP=fmax"]
    assert compiler._program(compiler._header.prepended(source, options), [*options, f"-D{GUARD}"])[0]


def test_few_declarations_are_read(compiler):
    header = pocl_header(compiler._device.platform.version)
    text = header.prepended("__kernel void f(__global float *x) { x[0] = exp(x[1]); }")
    functions = {line.split("(")[0].split()[-1] for line in text.splitlines() if line.endswith(");")}
    assert functions == {"exp"}


def test_an_error_is_told_as_without_it(compiler):
    with pytest.raises(CompileError) as error:
        compiler.compile("\n__kernel void f(__global int *x) { x[0] = unknown(1); }", ())
    assert ":2:" in str(error.value) and "unknown" in str(error.value)


def test_a_warning_has_the_number_of_the_source_s_line(compiler):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        log = compiler.compile("\n#warning look here\n__kernel void f(__global int *x) { x[0] = 1; }", ()).log
    assert ":2:" in log and "look here" in log


@pytest.mark.parametrize("platform", ["OpenCL 3.0 CUDA 13.0", "OpenCL 3.0 PoCL 3.01 Linux, RELOC, LLVM 18"])
def test_another_platform_is_left_alone(platform):
    assert pocl_header(platform) is None
