"""Kernels that launch kernels, with the real nvcc where there is one: a binary that a driver can load."""

import random
import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.nvcc import find_nvcc
from autotune.compilers.resource_usage import read_resources
from autotune.compilers.source_text import read_source, render
from autotune.errors import CompileError, SetupError
from autotune.space import bind, load_space, problem_of
from tests.contract.test_resource_usage import KERNELS, read, reported
from tests.kernel_space import spec_of
from tests.space_example import GPU

SPACES = [
    path
    for path in sorted((Path(__file__).parents[2] / "spaces").glob("*.yaml"))
    if spec_of(path.stem).compiler == "nvcc"
]
EXECUTABLE = 2  # the ELF type of a file that needs no further linking


@pytest.fixture(scope="module", autouse=True)
def nvcc():
    try:
        return find_nvcc()
    except SetupError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("turn", "architecture"), [(0, "sm_75"), (1, "sm_90")])
def test_each_way_to_greet_from_nested_grids_compiles(turn, architecture):
    """Every other one for an architecture, which takes a second of compiler each."""
    folder = Path(__file__).parents[2] / "examples" / "kernels"
    spec = load_space(folder / "nested_hello.yaml")
    gpu = replace(GPU, backend="cuda", architecture=architecture)
    space, source = bind(spec, gpu, problem_of(spec, gpu)), read_source(spec.source)
    for config in [*space][turn::2]:
        binary = cuda_compiler(architecture, "nvcc").compile(render(source, space.macros(config)), ())
        assert binary.data[:4] == b"\x7fELF", config


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_the_default_and_a_random_configuration_become_executable_binaries(path):
    """The default for the oldest architecture, the other one for the newest."""
    spec = spec_of(path.stem)
    source = read_source(spec.source)
    for architecture in ("sm_75", "sm_100"):
        device = replace(GPU, backend="cuda", architecture=architecture)
        space = bind(spec, device, problem_of(spec, device))
        chosen = space.config(random.Random(architecture).randrange(len(space)))
        config = spec.default if architecture == "sm_75" else chosen
        compiler = cuda_compiler(architecture, "nvcc")
        binary = compiler.compile(render(source, space.macros(config)), space.options(config, "cuda"))
        assert struct.unpack_from("<4s12xH", binary.data) == (b"\x7fELF", EXECUTABLE)
        entries = {step.entry for step in space.launches(config)}
        assert entries <= read_resources(binary.data).keys()
        assert 0 < binary.registers < 100 and binary.shared_bytes < 1024  # the device runtime does not count


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_every_landmark_compiles(path):
    spec = spec_of(path.stem)
    source, compiler = read_source(spec.source), cuda_compiler("sm_90", "nvcc")
    device = replace(GPU, backend="cuda")
    space = bind(spec, device, problem_of(spec, device))
    for landmark in spec.landmarks:
        assert space.why_invalid(landmark.config) == ()
        assert compiler.compile(render(source, space.macros(landmark.config)), ()).data[:4] == b"\x7fELF"


@pytest.mark.parametrize("architecture", ["sm_80", "sm_100"])
def test_kernels_are_found_by_their_names_and_read_as_the_compiler_reports_them(architecture):
    template = "\ntemplate <int n> __global__ void scale(float *x) { x[threadIdx.x] *= n; }\n"
    names = ("scale<3>", "plain", "shares", "spills", "indexes")
    binary = cuda_compiler(architecture, "nvcc").compile(KERNELS + template, ("--ptxas-options=-v",), names)
    assert [binary.symbol(name) for name in names] == ["_Z5scaleILi3EEvPf", *names[1:]]
    assert read(binary) == reported(binary.log) and len(read(binary)) == len(names)


def test_it_is_named_by_its_full_version():
    assert re.fullmatch(r"nvcc \d+\.\d+\.\d+", cuda_compiler("sm_90", "nvcc").name)


def test_a_mistake_is_reported_at_its_line_of_the_users_file():
    with pytest.raises(CompileError, match=r'mine\.cu\(7\): error: identifier "nothing" is undefined'):
        cuda_compiler("sm_90", "nvcc").compile('#line 7 "mine.cu"\n__device__ int x = nothing;\n', ())
