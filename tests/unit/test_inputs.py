"""What a seed draws."""

import zlib

import numpy as np
import pytest

from autotune.core.trials import Problem
from autotune.problem.inputs import draw_inputs
from autotune.problem.workload import Array

N = 2**20 + 5  # one generator draws all but five


def drawn(dtype, *fill, seed=0, name="x"):
    found = draw_inputs(Problem({"n": N}, dtype, seed), (Array(name, dtype, (N,), "in", fill),))
    return found[name].astype(np.float64)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_elements_are_distributed_as_asked_and_depend_on_seed_name_and_place(dtype):
    values = drawn(dtype, "normal", 3, 2)
    assert np.allclose([values.mean(), values.std()], [3, 2], atol=0.05)
    assert values.max() > 9 and values.min() < -3 and len(np.unique(values)) > 1000
    assert np.array_equal(values, drawn(dtype, "normal", 3, 2))
    half = N // 2
    for other in (drawn(dtype, "normal", 3, 2, seed=1), drawn(dtype, "normal", 3, 2, name="y")):
        assert np.mean(values == other) < 0.01
    assert np.mean(values[:half] == values[half : 2 * half]) < 0.01
    assert set(drawn(dtype, "integers", -100, 100)) == set(range(-100, 101))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64"])
def test_drawing_piece_by_piece_gives_what_one_call_for_each_generator_gives(dtype):
    generators = [np.random.default_rng([7, zlib.crc32(b"x"), number]) for number in range(2)]
    counts = (2**20, N - 2**20)
    expected = [
        generator.integers(0, 100, count, dtype, endpoint=True)
        for generator, count in zip(generators, counts, strict=True)
    ]
    assert np.array_equal(drawn(dtype, "integers", 0, 100, seed=7), np.concatenate(expected))
