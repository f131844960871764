"""The number of launches and of their blocks, for all rows at once."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from autotune.compilers.source_text import packaged
from autotune.hardware.names import known_gpu
from autotune.searchers.surrogate.pooled_trials import launch_extents
from autotune.space import ValidSpace, bind, load_space, problem_of
from autotune.testing.searcher_contract import CONSTRAINTS, DEFAULT, PARAMETERS, make_space

SAMPLED = 40


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("reduce", {"n": 1000}),
        ("reduce", {"n": 2**26}),
        ("bicgk", {}),
        ("leak", {}),
        ("matmul", {}),
        ("triton_matmul", {}),
    ],
)
def test_they_are_those_of_each_configuration(name, sizes):
    spec, device = load_space(packaged("spaces") / f"{name}.yaml"), known_gpu("NVIDIA H200")
    space = bind(spec, device, problem_of(spec, device, sizes))
    found = launch_extents(space)
    assert found.launches.shape == found.blocks.shape == (len(space),)
    for row in np.random.default_rng(0).integers(0, len(space), SAMPLED):
        launches = space.launches(space.config(int(row)))
        assert found.launches[row] == len(launches)
        assert found.blocks[row] == max(prod(step.grid) for step in launches)


def test_what_a_python_function_computes_counts_as_one(tmp_path):
    space = make_space(tmp_path, PARAMETERS, CONSTRAINTS, DEFAULT)
    (launch,) = space.spec.launch
    step = replace(launch, grid=("BLOCK_SIZE", "computed"))
    unknown = ValidSpace(replace(space.spec, launch=(step, step)), space.device, space.problem, space.rows)
    found = launch_extents(unknown)
    assert (found.launches == 2).all()
    assert [*found.blocks] == [config["BLOCK_SIZE"] for config in space]
