"""Every kernel's CUDA side, without a GPU: NVRTC makes a real binary for four architectures.

Defaults for all four, landmarks for the oldest or the newest, and each configuration of the covering array
for one of them. All but the defaults for sm_90 are compiled with less optimisation, in a small part of the
time: that shows what a value or an architecture lacks.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.nvrtc import CudaCompiler
from autotune.compilers.resource_usage import read_resources
from autotune.compilers.source_text import packaged, read_source, render
from autotune.core.expressions import parse
from autotune.core.launch_plan import macros
from autotune.core.records import Config
from autotune.devices import backend
from autotune.errors import CompileError
from autotune.space import bind, load_space, problem_of
from tests.kernel_space import spec_of
from tests.sampled_configurations import sampled, shared_out

FILES = sorted((Path(__file__).parents[2] / "spaces").glob("*.yaml"))
SPACES = [path for path in FILES if spec_of(path.stem).compiler == "nvrtc"]

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
OLDEST_AND_NEWEST = ("sm_75", "sm_100")
HASTY = "--Ofast-compile=max"
WITH_OPTIONS = [path for path in SPACES if spec_of(path.stem).compiler_options.get("cuda")]
MAX_PAIRWISE = 40  # rows: every value; 73% of convolution's pairs, 86% of reduce's, 95% of others'
MAX_WIDE = 64  # with --wide: 82% of convolution's pairs, 93% of reduce's, and all of any other's


def _gpu(architecture):
    (fake,) = backend("fake").list_devices()
    return replace(fake, backend="cuda", name=architecture, architecture=architecture)


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_landmarks_and_every_pair_of_values_compile(path, request):
    spec = spec_of(path.stem)
    source = read_source(spec.source)
    most = MAX_WIDE if request.config.getoption("--wide") else MAX_PAIRWISE
    samples = sampled(spec, _gpu(ARCHITECTURES[0]), most)
    known = [(sample.space, config) for sample in samples for config in sample.known]
    known += [(samples[0].space, config) for config in spec.declared_wrong]
    assert {landmark.config for landmark in spec.landmarks} <= {config for _, config in known}
    default = [(space, config) for space, config in known if config == spec.default]
    turns = {architecture: known[turn::2] for turn, architecture in enumerate(OLDEST_AND_NEWEST)}
    for architecture, pairwise in zip(ARCHITECTURES, shared_out(samples, len(ARCHITECTURES)), strict=True):
        compiler = cuda_compiler(architecture)
        for space, config in dict.fromkeys((*default, *turns.get(architecture, ()), *pairwise)):
            hasty = () if (config, architecture) == (spec.default, "sm_90") else (HASTY,)
            options = (*space.options(config, "cuda"), *hasty)
            binary = compiler.compile(render(source, space.macros(config)), options)
            assert binary.data[:4] == b"\x7fELF", (architecture, config)


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_landmarks_compile_without_the_troubles_that_others_mend(path):
    spec = spec_of(path.stem)
    source, gpu = read_source(spec.source), _gpu("sm_90")
    space, compiler = bind(spec, gpu, problem_of(spec, gpu)), cuda_compiler("sm_90")
    for landmark in spec.landmarks:
        text, options = render(source, space.macros(landmark.config)), space.options(landmark.config, "cuda")
        for trouble in landmark.fixed_by:
            variant = compiler.compile(f"#define {trouble} 1\n{text}", options)
            is_other = variant.data != compiler.compile(text, options).data
            assert is_other or trouble == "NO_BOUNDS_CHECKS", landmark.name  # which the tree makes


@pytest.mark.parametrize("path", WITH_OPTIONS, ids=lambda path: path.stem)
def test_every_option_follows_from_a_parameter(path):
    """One that does not is imposed on architectures for which nobody has tried it."""
    spec = spec_of(path.stem)
    for text in spec.compiler_options["cuda"].values():
        assert parse(text).names & {parameter.name for parameter in spec.parameters}, text


@pytest.mark.parametrize("path", WITH_OPTIONS, ids=lambda path: path.stem)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_the_options_of_the_default_put_nothing_into_local_memory(path, architecture):
    spec = spec_of(path.stem)
    space = bind(spec, _gpu(architecture), problem_of(spec, _gpu(architecture)))
    text, compiler = render(read_source(spec.source), space.macros(spec.default)), cuda_compiler(architecture)
    with_them, without = (
        max(used.local_bytes for used in read_resources(compiler.compile(text, options).data).values())
        for options in (space.options(spec.default, "cuda"), ())
    )
    assert with_them <= without


@pytest.mark.parametrize(
    "name, change", [("packed_half", {}), ("tensor", {}), ("tensor", {"INSTRUCTION": "wgmma"})]
)
def test_kernels_of_ceilings_for_cuda_alone_compile(name, change):
    spec = load_space(packaged("kernels") / "ceilings" / f"{name}.yaml")
    space = bind(spec, _gpu("sm_90"), problem_of(spec, _gpu("sm_90")))
    config = Config({**spec.default, **change})
    text = render(read_source(spec.source), space.macros(config))
    binary = cuda_compiler("sm_90").compile(text, space.options(config, "cuda"))
    assert config in space and binary.spill_bytes == 0


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
    spec = spec_of("reduce")
    source, values = read_source(spec.source), macros(spec.parameters, spec.default, "float32")
    reduced, whole = CudaCompiler("sm_90"), CudaCompiler("sm_90")
    whole.compile('extern "C" __global__ void any(cudaTextureObject_t x) {}', ())  # needs the whole language
    for options in ((), ("--use_fast_math",), ("--maxrregcount=24",)):
        text = render(source, values)
        assert reduced.compile(text, options).data == whole.compile(text, options).data
