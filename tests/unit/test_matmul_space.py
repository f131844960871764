"""The matrix product's space: its size, its ladder, that blocks cover C, and its reference."""

import random

import numpy as np
import pytest

from autotune.compilers.source_text import read_source, render
from autotune.core import launch_plan as plan
from autotune.core.argument_values import arguments
from autotune.devices import backend
from autotune.space import lint
from tests.kernel_space import CPU, bound, reference_of, spec_of, steps

SPEC = spec_of("matmul")


@pytest.fixture(scope="module")
def gpu_space():
    return bound(SPEC)


@pytest.fixture(scope="module")
def cpu_space():
    return bound(SPEC, CPU)


def test_there_are_at_least_5000_valid_configurations(gpu_space, cpu_space):
    assert len(gpu_space) >= 5000
    assert len(cpu_space) >= 1000


def test_the_landmarks_are_the_steps_in_order_and_the_source_uses_every_parameter(gpu_space):
    assert [mark.name for mark in SPEC.landmarks if mark.config not in gpu_space or not mark.note] == []
    assert steps(SPEC) == sorted(steps(SPEC)) and set(steps(SPEC)) == set(range(12))
    assert lint(gpu_space, read_source(SPEC.source).text, ()).mistakes == ()


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (67, 131, 101), (8192, 8192, 8192), (100_000, 3, 1)])
def test_blocks_cover_the_product_with_none_to_spare(gpu_space, m, n, k):
    for index in random.Random(0).sample(range(len(gpu_space)), 50):
        config = gpu_space.config(index)
        (launch,) = gpu_space.launches(config, {"m": m, "n": n, "k": k})
        down, across = -(-m // config["BLOCK_M"]), -(-n // config["BLOCK_N"])
        assert launch.grid == (down * across, 1, 1)
        threads = config["BLOCK_M"] // config["THREAD_M"] * (config["BLOCK_N"] // config["THREAD_N"])
        assert launch.block == (threads, 1, 1)


def test_every_thread_copies_whole_vectors_of_both_tiles(gpu_space):
    for index in random.Random(1).sample(range(len(gpu_space)), 500):
        config = gpu_space.config(index)
        (launch,) = gpu_space.launches(config)
        per_turn = launch.block[0] * config["LOAD_WIDTH"]
        if config["SHARED_OPERANDS"] != "none":
            assert config["BLOCK_M"] * config["BLOCK_K"] % per_turn == 0
        if config["SHARED_OPERANDS"] == "both":
            assert config["BLOCK_K"] * config["BLOCK_N"] % per_turn == 0


def test_tiles_fit_where_the_launch_reserves_them(gpu_space, cpu_space):
    wide = next(mark.config for mark in SPEC.landmarks if mark.name == "matmul11_wide_pipeline")
    (launch,) = gpu_space.launches(wide)
    assert launch.shared_bytes == 4 * 3 * 8 * (256 + 4 + 128 + 4)
    (on_cpu,) = cpu_space.launches(SPEC.default)
    assert on_cpu.shared_bytes == 0  # OpenCL declares its arrays in the kernel


def test_the_reference_multiplies_in_float64():
    a, b = np.float32([[2**12, 1]]), np.float32([[2**12], [1]])
    found = reference_of(SPEC)({"a": a, "b": b}, {"m": 1, "n": 1, "k": 2})["c"]
    assert found.tolist() == [[2**24 + 1]]  # which float32 cannot hold


def _on_cpu(config, sizes, inputs):
    """C as the CPU computes it, whether or not a search would try that configuration there."""
    device, compiler = (getattr(backend("opencl"), name)(0) for name in ("open_device", "open_compiler"))
    values = plan.known_values(device.info, sizes, "float32", config, SPEC.derived)
    source = render(read_source(SPEC.source), plan.macros(SPEC.parameters, config, "float32"))
    program = device.load(compiler.compile(source, ("-cl-opt-disable",)))
    given = {}
    for argument in arguments(SPEC.arguments, values, "float32"):
        if argument.value is not None:
            given[argument.name] = np.uint32(argument.value)
        else:
            content = inputs.get(argument.name, np.full(argument.shape, np.nan, np.float32))
            given[argument.name] = device.allocate(content.nbytes)
            device.write(given[argument.name], content.view(np.uint8).ravel())
    device.run(program, plan.launches(SPEC.launch, values), given)
    found = device.read(given["c"], 4 * sizes["m"] * sizes["n"]).view(np.float32)
    return found.reshape(sizes["m"], sizes["n"])


def test_landmarks_that_no_cpu_is_tuned_with_are_right_there_too(cpu_space):
    sizes = {"m": 300, "n": 292, "k": 76}
    generator = np.random.default_rng(0)
    inputs = {
        name: generator.uniform(-1, 1, (sizes[rows], sizes[columns])).astype(np.float32)
        for name, rows, columns in (("a", "m", "k"), ("b", "k", "n"))
    }
    expected = reference_of(SPEC)(inputs, sizes)["c"]
    untried = [landmark for landmark in SPEC.landmarks if landmark.config not in cpu_space]
    assert untried
    for landmark in untried:
        wrong = np.abs(_on_cpu(landmark.config, sizes, inputs) - expected).max()
        assert wrong < 5e-7 * sizes["k"], landmark.name
