"""What OpenCL's compiler returns can be loaded, and what it refuses is a compile error."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pyopencl as cl
import pytest

from autotune.core.records import Launch
from autotune.core.trials import Binary
from autotune.devices import opencl
from autotune.devices.opencl import OpenCLCompiler, OpenCLDevice, build_source, built
from autotune.errors import CompileError
from autotune.processes.fork_server import cold_variables
from autotune.runtime.opencl import OpenCLLauncher
from tests.devices_here import intel_here, pocl_here

GRIDS = """
import sys
from autotune.core.records import Launch
from autotune.devices.opencl import OpenCLCompiler, OpenCLDevice
number = int(sys.argv[1])
device = OpenCLDevice(number)
program = device.load(OpenCLCompiler(number).compile(sys.argv[2], ()))
x = {"x": device.allocate(4 * 2**17)}
for blocks in map(int, sys.argv[3:]):
    device.run(program, [Launch("twice", (blocks, 1, 1), (64, 1, 1), 0, ("x",))], x)
"""
HASHES = """
import sys
from autotune.devices.opencl import OpenCLCompiler
compiler = OpenCLCompiler(int(sys.argv[2]))
for options in (["-DFACTOR=2"], ["-DFACTOR=2"], ["-DFACTOR=2", "-DUNUSED=3"], ["-DFACTOR=5"]):
    print(compiler.compile(sys.argv[1], options).sha256)
"""
SOURCE = "__kernel void twice(__global int *x) { x[get_global_id(0)] *= 2; }"


@pytest.fixture(scope="module")
def compiler():
    return OpenCLCompiler(0)


def doubled(binary, shared_bytes=0):
    device = OpenCLDevice(0)
    buffer = device.allocate(16)
    device.write(buffer, np.arange(4, dtype=np.int32).view(np.uint8))
    launch = Launch("twice", (2, 1, 1), (2, 1, 1), shared_bytes, ("x",))
    device.run(device.load(binary), [launch], {"x": buffer})
    return device.read(buffer, 16).view(np.int32).tolist()


def test_the_size_of_shared_memory_in_a_launch_is_for_cuda_and_left_out(compiler):
    """A portable source says how much an array has in OpenCL; a plan is for both."""
    assert doubled(compiler.compile(SOURCE, ()), shared_bytes=1 << 20) == [0, 2, 4, 6]


def test_a_compiled_source_and_a_built_program_are_loaded(compiler):
    program = built(cl.Program(compiler._context, SOURCE))
    data = program.get_info(cl.program_info.BINARIES)[0]  # as older caches of binaries hold them
    older = Binary(data, hashlib.sha256(data).hexdigest(), "", 0.0)
    assert doubled(compiler.compile(SOURCE, ())) == doubled(older) == [0, 2, 4, 6]


def test_binaries_of_intel_differ_only_if_their_machine_code_does(tmp_path):
    """They hold the options, and the number of the program in its process."""
    cold = os.environ | cold_variables(str(tmp_path))
    command = [sys.executable, "-c", HASHES, SOURCE.replace("2", "FACTOR"), str(intel_here())]
    done = subprocess.run(command, env=cold, check=True, stdout=subprocess.PIPE)
    first, again, unused, other = done.stdout.split()
    assert first == again == unused != other


def test_pocl_compiles_no_machine_code_ahead():
    assert b"\x7fELF" not in OpenCLCompiler(pocl_here()).compile(SOURCE, ()).data


def test_a_function_that_nothing_defines_is_a_compile_error(compiler):
    with pytest.raises(CompileError, match=r"nothing defines|Symbols not found"):
        compiler.compile("int other(int); __kernel void f(__global int *x) { x[0] = other(1); }", ())


PROGRAM = """#include <cstdio>
#define KERNEL __kernel void
KERNEL twice(__global int *x) { x[get_global_id(0)] *= 2; }
int main() { twice<<<1, 4>>>(nullptr); std::puts("done"); }
"""


def test_a_lack_of_memory_during_a_build_is_told_and_not_blamed_on_the_source(compiler, monkeypatch):
    def lacks(*_):
        raise cl.MemoryError("clBuildProgram failed: OUT_OF_HOST_MEMORY")

    monkeypatch.setattr(opencl, "built", lacks)
    context = compiler._context
    with pytest.raises(cl.MemoryError):
        build_source(context, SOURCE, ())
    launcher = OpenCLLauncher(cl.CommandQueue(context))  # a call is told in autotune's own words
    with pytest.raises(CompileError, match="OUT_OF_HOST_MEMORY"):
        launcher.compile(SOURCE, (), "", ())


def test_a_source_that_is_refused_leaves_no_file(compiler, temporary):
    """Also in a program that does not disable pyopencl's cache, which would save the source."""
    with pytest.raises(CompileError):
        compiler.compile(SOURCE.replace("int", "whole"), ())
    assert list(temporary.iterdir()) == []


def test_a_host_program_next_to_a_kernel_is_left_out_and_the_kernels_own_mistakes_are_told(compiler):
    assert doubled(compiler.compile(PROGRAM, ())) == [0, 2, 4, 6]
    with pytest.raises(CompileError) as error:
        compiler.compile(PROGRAM.replace("2", "two"), ())
    assert "3:" in str(error.value) and "'two'" in str(error.value)
    assert "cstdio" not in str(error.value) and "main" not in str(error.value)


@pytest.mark.parametrize(("blocks", "compilations"), [(["2048", "1"], 1), (["1", "2048"], 2)])
def test_machine_code_for_a_wide_grid_serves_smaller_ones_that_run_later(tmp_path, blocks, compilations):
    cold = os.environ | cold_variables(str(tmp_path))
    subprocess.run([sys.executable, "-c", GRIDS, str(pocl_here()), SOURCE, *blocks], env=cold, check=True)
    assert len(list(tmp_path.rglob("twice.so"))) == compilations


def test_a_kernel_that_is_called_like_a_function_of_opencl_is_found(compiler):
    """PoCL renames its own functions by macros, and the kernel with them."""
    source = SOURCE.replace("twice", "step")
    assert list(OpenCLDevice(0).load(compiler.compile(source, ()))) == ["step"]
