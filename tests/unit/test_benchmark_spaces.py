"""Two classical spaces, whose numbers of valid configurations are known from the literature, counted."""

from dataclasses import replace
from pathlib import Path

import pytest

from autotune.space import bind, load_space, problem_of
from tests.space_example import GPU

# the literature counts blocks of any size
ANY_BLOCK = replace(GPU, max_threads_per_block=2**31 - 1)
SPACES = Path(__file__).parents[2] / "benchmarks" / "spaces"


@pytest.mark.parametrize(
    ("name", "combinations", "valid"),
    [
        ("gemm", 746_496, 205_216),
        ("gemm_wide", 1_327_104, 241_600),
        ("convolution", 108_928_800, 34_713),
    ],
)
def test_a_classical_space_has_exactly_its_known_configurations(name, combinations, valid):
    spec = load_space(SPACES / f"{name}.yaml")
    space = bind(spec, ANY_BLOCK, problem_of(spec, ANY_BLOCK))
    assert (space.cartesian, len(space)) == (combinations, valid)
    assert spec.default in space
    for index in range(0, valid, 9973):
        config = space.config(index)
        assert space.why_invalid(config) == ()
        assert space.index(config) == index
