"""The convolution's space: its size, its ladder, the threads that bring in the halo, and its reference."""

import random

import numpy as np
import pytest

from autotune.compilers.source_text import read_source
from autotune.space import lint
from tests.kernel_space import CPU, bound, reference_of, spec_of, steps

SPEC = spec_of("convolution")


@pytest.fixture(scope="module")
def gpu_space():
    return bound(SPEC)


@pytest.fixture(scope="module")
def cpu_space():
    return bound(SPEC, CPU)


def test_few_of_more_than_100_million_combinations_are_valid(gpu_space, cpu_space):
    assert gpu_space.cartesian > 100_000_000
    assert 35_000 <= len(gpu_space) <= gpu_space.cartesian // 1000
    assert len(cpu_space) >= 1000


def test_the_landmarks_are_the_steps_in_order_and_the_source_uses_every_parameter(gpu_space):
    assert [mark.name for mark in SPEC.landmarks if mark.config not in gpu_space or not mark.note] == []
    assert steps(SPEC) == list(range(8))
    assert lint(gpu_space, read_source(SPEC.source).text, ()).mistakes == ()


@pytest.mark.parametrize(("width", "height"), [(1, 1), (67, 61), (4096, 4096)])
def test_blocks_cover_the_result_with_none_to_spare(gpu_space, width, height):
    for index in random.Random(0).sample(range(len(gpu_space)), 50):
        config = gpu_space.config(index)
        (launch,) = gpu_space.launches(config, {"width": width, "height": height})
        for extent, blocks, axis in ((width, launch.grid[0], "X"), (height, launch.grid[1], "Y")):
            step = config[f"BLOCK_{axis}"] * config[f"WORK_{axis}"]
            assert blocks * step >= extent > (blocks - 1) * step


@pytest.mark.parametrize("axis", ["X", "Y"])
def test_helpers_bring_in_the_whole_halo_and_no_thread_is_left_over(gpu_space, axis):
    for index in random.Random(1).sample(range(len(gpu_space)), 500):
        config = gpu_space.config(index)
        brought = config[f"LOAD_{axis}"] * config[f"WORK_{axis}"]
        needed = config[f"BLOCK_{axis}"] * config[f"WORK_{axis}"]
        if config["TILE"] == "helpers":
            assert brought >= needed + 16 > brought - config[f"WORK_{axis}"]
        else:
            assert brought == needed


def test_the_reference_adds_up_weighted_neighbours():
    generator = np.random.default_rng(0)
    image = generator.uniform(-1, 1, (5 + 16, 3 + 16)).astype(np.float32)
    weights = generator.uniform(-1, 1, (17, 17)).astype(np.float32)
    found = reference_of(SPEC)({"image": image, "weights": weights}, {"width": 3, "height": 5})["result"]
    windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (17, 17))
    assert found == pytest.approx(np.einsum("yxvu,vu->yx", windows, weights.astype(np.float64)), abs=1e-12)
