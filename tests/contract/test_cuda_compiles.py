"""Every kernel's CUDA side, without a GPU: NVRTC makes a real binary for four architectures."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.devices import backend
from autotune.devices.cuda_compiler import CudaCompiler
from autotune.model import Config
from autotune.sources import read_source, render
from autotune.space import bind, load_space, problem_of

SPACES = sorted((Path(__file__).parents[2] / "spaces").glob("*.yaml"))
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
