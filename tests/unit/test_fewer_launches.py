"""Configurations with fewer launches than known ones are tried first, as small problems may want them."""

from pathlib import Path

import pytest

from autotune.core.records import Config
from autotune.hardware.architectures import architecture
from autotune.plans.fewer_launches import MAX_CHANGES, with_fewer_launches
from autotune.space import bind, load_space, problem_of

SPEC = load_space(Path(__file__).parents[2] / "spaces" / "reduce.yaml")
KNOWN = Config(  # fast for large arrays: one launch sets the sum to 0, the other adds to it
    {
        **SPEC.default,
        **{"ALGORITHM": "shuffle", "USE_SHUFFLE": True, "BLOCK_SIZE": 384, "FINISH": "atomic"},
        **{"WORK_PER_THREAD": 32, "VECTOR_WIDTH": 4, "UNROLL": 8},
    }
)


def space_of(n):
    device = architecture("sm_90").device
    return bind(SPEC, device, problem_of(SPEC, device, {"n": n}, "float32"))


@pytest.mark.parametrize(
    ("n", "finishes"), [(1024, ["last_block", "second_launch"]), (2**20, ["last_block"])]
)
def test_each_plan_with_fewer_launches_is_found_once(n, finishes):
    space = space_of(n)
    assert len(space.launches(KNOWN)) == 2
    found = with_fewer_launches(space, [KNOWN])
    assert all(config in space and len(space.launches(config)) == 1 for config in found)
    changes = [sum(KNOWN[name] != value for name, value in config.items()) for config in found]
    assert all(1 <= count <= MAX_CHANGES for count in changes)
    assert [config["FINISH"] for config in found] == finishes


def test_nothing_has_fewer_launches_than_one():
    space = space_of(1024)
    alone = Config({**KNOWN, "FINISH": "second_launch"})
    assert alone in space and len(space.launches(alone)) == 1
    assert with_fewer_launches(space, [alone, KNOWN]) == with_fewer_launches(space, []) == []
