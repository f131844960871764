"""Every kernel's CUDA side, without a GPU: NVRTC makes a real binary for four architectures.

Landmarks are optimised in full, and for one architecture so are random configurations. For the others these
are compiled in half the time, with less optimisation: they show what an architecture lacks.
"""

import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from autotune.compiling import CompilerPool, cuda_compiler
from autotune.devices import backend
from autotune.devices.base import CompileError
from autotune.devices.cuda_compiler import CudaCompiler
from autotune.plan import macros
from autotune.sources import read_source, render
from autotune.space import load_space
from autotune.trials import Binary
from tests.sampled_configurations import sampled

FILES = sorted((Path(__file__).parents[2] / "spaces").glob("*.yaml"))
SPACES = [path for path in FILES if load_space(path).compiler == "nvrtc"]

OPTIMISED = "sm_90"
HASTY = "--Ofast-compile=max"


def _gpu(architecture):
    (fake,) = backend("fake").list_devices()
    return replace(fake, backend="cuda", name=architecture, architecture=architecture)


@pytest.fixture(scope="module", params=["sm_75", "sm_80", "sm_90", "sm_100"])
def compilers(request):
    """An architecture, and a process per core that compiles for it."""
    cores = len(os.sched_getaffinity(0))
    pool = CompilerPool(partial(cuda_compiler, request.param), workers=cores, timeout_s=120)
    yield request.param, pool
    pool.close()


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_landmarks_and_random_configurations_compile(path, compilers):
    architecture, pool = compilers
    spec, device = load_space(path), _gpu(architecture)
    source = read_source(spec.source)
    for space, configs in sampled(spec, device):
        assert {landmark.config for landmark in spec.landmarks} <= set(configs)
        compiled = []
        for one in configs:
            is_random = one != spec.default and all(one != mark.config for mark in spec.landmarks)
            hasty = (HASTY,) if is_random and architecture != OPTIMISED else ()
            options = (*space.options(one, "cuda"), *hasty)
            compiled.append(pool.submit(render(source, space.macros(one)), options))
        for config, future in zip(configs, compiled, strict=True):
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
