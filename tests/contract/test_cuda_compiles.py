"""Every kernel's CUDA side, without a GPU: NVRTC makes a real binary for four architectures."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.devices import backend
from autotune.devices.base import CompileError
from autotune.devices.cuda_compiler import CudaCompiler
from autotune.model import Config
from autotune.plan import macros
from autotune.sources import read_source, render
from autotune.space import bind, load_space, problem_of

FILES = sorted((Path(__file__).parents[2] / "spaces").glob("*.yaml"))
SPACES = [path for path in FILES if load_space(path).compiler == "nvrtc"]
RANDOM_CONFIGURATIONS = 50


def _gpu(architecture):
    (fake,) = backend("fake").list_devices()
    return replace(fake, backend="cuda", name=architecture, architecture=architecture)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_landmarks_and_random_configurations_compile(path, architecture):
    spec = load_space(path)
    source, compiler, device = read_source(spec.source), CudaCompiler(architecture), _gpu(architecture)
    for dtype in spec.dtypes:
        space = bind(spec, device, problem_of(spec, device, dtype=dtype))
        generator = random.Random(architecture + dtype)
        chosen = [space.config(generator.randrange(len(space))) for _ in range(RANDOM_CONFIGURATIONS)]
        landmarks = [landmark.config for landmark in spec.landmarks]
        for config in {*landmarks, *chosen, Config(spec.default)}:
            assert space.why_invalid(config) == (), config
            binary = compiler.compile(render(source, space.macros(config)), space.options(config, "cuda"))
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


def test_the_reduced_language_makes_the_same_binaries():
    spec = load_space(SPACES[0].with_name("reduce.yaml"))
    source, values = read_source(spec.source), macros(spec.parameters, spec.default, "float32")
    reduced, whole = CudaCompiler("sm_90"), CudaCompiler("sm_90")
    whole.compile('extern "C" __global__ void any(cudaTextureObject_t x) {}', ())  # needs the whole language
    for options in ((), ("--use_fast_math",), ("--maxrregcount=24",)):
        text = render(source, values)
        assert reduced.compile(text, options).data == whole.compile(text, options).data
