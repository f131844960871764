"""Every kernel's CUDA side, without a GPU: NVRTC makes a real binary for four architectures.

Defaults and landmarks for all four, each configuration of the covering array for one. All but the defaults
are compiled with less optimisation, in a small part of the time: that shows what a value or an architecture
lacks.
"""

import os
import re
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest

from autotune.compilers.base import cuda_compiler
from autotune.compilers.kernel_source import read_source, render
from autotune.compilers.nvrtc import CudaCompiler
from autotune.core.launch_plan import macros
from autotune.core.trials import Binary
from autotune.devices import backend
from autotune.errors import CompileError
from autotune.evaluation.compiler_pool import CompilerPool
from autotune.space import load_space
from tests.sampled_configurations import sampled, shared_out

FILES = sorted((Path(__file__).parents[2] / "spaces").glob("*.yaml"))
SPACES = [path for path in FILES if load_space(path).compiler == "nvrtc"]

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
pytestmark = pytest.mark.xdist_group("compilers")  # a pool of processes for each architecture is enough
HASTY = "--Ofast-compile=max"


def _gpu(architecture):
    (fake,) = backend("fake").list_devices()
    return replace(fake, backend="cuda", name=architecture, architecture=architecture)


@pytest.fixture(scope="module", params=ARCHITECTURES)
def compilers(request):
    """An architecture, and a process per core that compiles for it."""
    cores = len(os.sched_getaffinity(0))
    pool = CompilerPool(partial(cuda_compiler, request.param), workers=cores, timeout_s=120)
    yield request.param, pool
    pool.close()


@cache
def parts(path):
    """What is compiled for each architecture: the landmarks, and its part of the covering array."""
    samples = sampled(load_space(path), _gpu(ARCHITECTURES[0]))
    known = [(sample.space, config) for sample in samples for config in sample.known]
    return known, dict(zip(ARCHITECTURES, shared_out(samples, len(ARCHITECTURES)), strict=True))


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_landmarks_and_every_pair_of_values_compile(path, compilers):
    architecture, pool = compilers
    spec = load_space(path)
    source = read_source(spec.source)
    known, pairwise = parts(path)
    assert {landmark.config for landmark in spec.landmarks} <= {config for _, config in known}
    compiled = []
    for space, config in (*known, *pairwise[architecture]):
        hasty = () if config == spec.default else (HASTY,)
        text = render(source, space.macros(config))
        compiled.append((config, pool.submit(text, (*space.options(config, "cuda"), *hasty))))
    for config, future in compiled:
        binary = future.result()
        assert isinstance(binary, Binary), f"{config}: {binary.detail}"
        assert binary.data[:4] == b"\x7fELF", config


def test_what_the_reduced_language_leaves_out_compiles_as_well():
    source = """
    extern "C" __global__ void sample(float* y, cudaTextureObject_t x) {
        y[threadIdx.x] = tex1Dfetch<float>(x, threadIdx.x);
    }
    """
    compiler = CudaCompiler("sm_90")
    for number in range(2):
        assert compiler.compile(f"#define NUMBER {number}\n{source}", ()).data[:4] == b"\x7fELF"
    with pytest.raises(CompileError, match="nothing"):
        compiler.compile(source.replace("threadIdx", "nothing"), ())


def test_the_compiler_is_named_by_its_full_version_whatever_it_compiles_for():
    names = {CudaCompiler(architecture).name for architecture in ("sm_80", "sm_90")}
    assert len(names) == 1 and re.fullmatch(r"NVRTC \d+\.\d+\.\d+", names.pop())


def test_the_reduced_language_makes_the_same_binaries():
    spec = load_space(SPACES[0].with_name("reduce.yaml"))
    source, values = read_source(spec.source), macros(spec.parameters, spec.default, "float32")
    reduced, whole = CudaCompiler("sm_90"), CudaCompiler("sm_90")
    whole.compile('extern "C" __global__ void any(cudaTextureObject_t x) {}', ())  # needs the whole language
    for options in ((), ("--use_fast_math",), ("--maxrregcount=24",)):
        text = render(source, values)
        assert reduced.compile(text, options).data == whole.compile(text, options).data
