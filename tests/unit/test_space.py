"""A bound space: which configurations it has, why others are not among them, and what one turns into."""

import tracemalloc
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from autotune.core.records import Config, Launch
from autotune.core.trials import Problem
from autotune.errors import ExpressionError, InputError, SpaceError
from autotune.space import ValidSpace, bind, load_space, problem_of
from tests.space_example import GPU, YAML, write_space


@pytest.fixture
def spec(tmp_path):
    return load_space(write_space(tmp_path))


@pytest.fixture
def space(spec):
    return bind(spec, GPU, problem_of(spec, GPU))


def with_changes(config, **changes):
    return Config({**config, **changes})


def test_valid_configurations_come_in_the_order_of_the_file(space):
    assert space.cartesian == 24
    assert [str(config) for config in space] == [
        f"ALGORITHM={algorithm} {rest}"
        for algorithm in ("tree", "shuffle")
        for rest in (
            "BLOCK_SIZE=32 VECTOR=1 UNROLL=False",
            "BLOCK_SIZE=32 VECTOR=1 UNROLL=True",
            "BLOCK_SIZE=32 VECTOR=2 UNROLL=False",
            "BLOCK_SIZE=64 VECTOR=1 UNROLL=False",
            "BLOCK_SIZE=64 VECTOR=1 UNROLL=True",
        )
    ]
    assert space.rows.dtype == np.uint8
    assert space.rows[:2].tolist() == [[0, 0, 0, 0], [0, 0, 0, 1]]


def test_device_properties_restrict_the_space(spec):
    without_shuffle = replace(GPU, has_shuffle=False, max_threads_per_block=32)
    space = bind(spec, without_shuffle, problem_of(spec, without_shuffle))
    assert {config["ALGORITHM"] for config in space} == {"tree"}
    assert {config["BLOCK_SIZE"] for config in space} == {32}


PLAIN = """\
schema: 1
kernel: plain
source: kernel.cu
reference: kernel.py
sizes: {default: {n: 1000}}
dtypes: [float32]
parameters:
  X: [1, 1024, 2048]
  Z: [1, 128]
  BYTES: [0, 65536]
  GRID: [1, 65536]
  TWICE: [true, false]
default: {X: 1, Z: 1, BYTES: 0, GRID: 1, TWICE: true}
arguments:
  - {name: x, dtype: float32, shape: [n], role: inout, fill: {constant: 1}}
launch:
  - {entry: first, grid: [1, GRID], block: [X], arguments: [x]}
  - {entry: second, grid: [1], block: [1, 1, Z], shared_bytes: BYTES, when: TWICE, arguments: [x]}
"""


def test_launches_beyond_the_device_limits_are_invalid(tmp_path):
    """4096 threads ran on a CPU that takes 1024, won, and were stored, but not served."""
    for name in ("kernel.cu", "kernel.py"):
        (tmp_path / name).touch()
    (tmp_path / "plain.yaml").write_text(PLAIN)
    spec = load_space(tmp_path / "plain.yaml")
    gpu = replace(GPU, backend="cuda", max_threads_per_block=1024, shared_bytes_per_block=49152)
    cpu = replace(gpu, backend="opencl")
    for device, takes in ((gpu, lambda z, grid: z <= 64 and grid <= 65535), (cpu, lambda z, grid: True)):
        space = bind(spec, device, problem_of(spec, device))
        expected = [
            dict(zip(("X", "Z", "BYTES", "GRID", "TWICE"), values, strict=True))
            for values in product((1, 1024, 2048), (1, 128), (0, 65536), (1, 65536), (True, False))
            if values[0] <= 1024
            and takes(values[1] if values[4] else 1, values[3])
            and not (values[4] and values[2])
        ]
        assert [dict(config) for config in space] == expected
    too_large = Config({**spec.default, "X": 2048})
    assert too_large not in space
    assert space.why_invalid(too_large) == (
        "X <= device.max_threads_per_block does not hold (X=2048, device.max_threads_per_block=1024)",
    )
    nothing = replace(gpu, max_threads_per_block=0)
    with pytest.raises(
        SpaceError, match=r"48 satisfy the constraints, but none satisfies X <= device.max_threads"
    ):
        bind(spec, nothing, problem_of(spec, nothing))


def test_config_and_index_are_inverse(space):
    for index, config in enumerate(space):
        assert space.config(index) == config
        assert space.index(config) == index
        assert space.index(Config(dict(reversed(list(config.items()))))) == index
        assert config in space


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"BLOCK_SIZE": 2048},
            "BLOCK_SIZE <= device.max_threads_per_block does not hold (BLOCK_SIZE=2048, device",
        ),
        (
            {"VECTOR": 2},
            "PER_BLOCK <= 64 and (not UNROLL or VECTOR == 1) does not hold (PER_BLOCK=128, UNROLL=False",
        ),
        ({"BLOCK_SIZE": 128}, "BLOCK_SIZE=128 is not one of 32, 64, 2048"),
        ({"UNROLL": 0}, "UNROLL=0 is not one of False, True"),
        ({"VECTOR": True}, "VECTOR=True is not one of 1, 2"),
        ({"VECTOR": 1.0}, "VECTOR=1.0 is not one of 1, 2"),
        ({"ALGORITHM": "shufle"}, "ALGORITHM=shufle is not one of tree, shuffle"),
        ({"UNROL": True}, "unknown parameter UNROL; did you mean UNROLL?"),
    ],
)
def test_an_invalid_configuration_has_reasons(space, spec, changes, reason):
    config = with_changes(spec.default, **changes)
    assert any(reason in why for why in space.why_invalid(config))
    assert space.index(config) is None
    assert config not in space


def test_a_missing_parameter_is_reported(space):
    assert space.why_invalid(Config({"ALGORITHM": "tree", "BLOCK_SIZE": 32})) == (
        "no value for VECTOR",
        "no value for UNROLL",
    )


def test_a_valid_configuration_may_hold_numpy_scalars(space, spec):
    assert space.why_invalid(spec.default) == ()
    assert with_changes(spec.default, BLOCK_SIZE=np.int64(64), UNROLL=np.bool_(False)) in space
    assert "ALGORITHM" not in space


def test_a_constraint_that_cannot_be_evaluated_is_violated(tmp_path):
    text = YAML.replace("constraints:", "constraints:\n  - n % (VECTOR - 1) == 0")
    spec = load_space(write_space(tmp_path, text))
    space = bind(spec, GPU, problem_of(spec, GPU))
    assert {config["VECTOR"] for config in space} == {2}
    assert "modulo" in space.why_invalid(spec.default)[0]


def test_a_derived_name_that_cannot_be_evaluated_makes_configurations_invalid(tmp_path):
    text = YAML.replace("derived:", "derived:\n  SHARE: n // (VECTOR - 1)")
    spec = load_space(write_space(tmp_path, text))
    space = bind(spec, GPU, problem_of(spec, GPU))
    assert {config["VECTOR"] for config in space} == {2}
    assert "a derived name cannot be evaluated" in space.why_invalid(spec.default)[0]
    assert not space.holds(spec.default, {"n": 1})
    with pytest.raises(ExpressionError, match="by zero"):
        space.values(spec.default)


@pytest.mark.parametrize(
    ("constraints", "reason"),
    [
        (
            "  - VECTOR > 2\n",
            "yaml:19: no configuration is valid on Example GPU: nothing satisfies 'VECTOR > 2'",
        ),
        (
            "  - device.warp_size > 32\n",
            "yaml:19: no configuration is valid on Example GPU: nothing satisfies",
        ),
        (
            "  - VECTOR > 1\n  - VECTOR < 2\n",
            "yaml:19: no configuration is valid on Example GPU: the constraints exclude each other; "
            "8 would be valid without 'VECTOR > 1'",
        ),
        (
            "  - VECTOR > 1\n  - VECTOR > 1\n  - VECTOR < 2\n  - VECTOR < 2\n",
            "yaml:19: no configuration is valid on Example GPU: the constraints exclude each other$",
        ),
    ],
)
def test_an_empty_space_is_refused_with_the_reason(tmp_path, constraints, reason):
    spec = load_space(write_space(tmp_path, YAML.replace("constraints:\n", f"constraints:\n{constraints}")))
    with pytest.raises(SpaceError, match=reason):
        bind(spec, GPU, problem_of(spec, GPU))


def test_more_than_30_million_configurations_are_refused(tmp_path):
    extra = "".join(f"  E{position}: [{', '.join(map(str, range(100)))}]\n" for position in range(6))
    zeros = "".join(f", E{position}: 0" for position in range(6))
    text = YAML.replace("derived:", f"{extra}derived:", 1).replace(
        "UNROLL: false}", f"UNROLL: false{zeros}}}", 1
    )
    spec = load_space(write_space(tmp_path, text))
    with pytest.raises(SpaceError, match="yaml:25: more than 30,000,000 configurations are left"):
        bind(spec, GPU, problem_of(spec, GPU))


def test_the_problem_takes_the_sizes_of_the_devices_kind(spec):
    assert problem_of(spec, GPU) == Problem({"n": 1_048_576}, "int32", 0)
    assert problem_of(spec, replace(GPU, kind="cpu")) == Problem({"n": 4096}, "int32", 0)
    assert problem_of(spec, GPU, {"n": 7}, "float32") == Problem({"n": 7}, "float32", 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": {"m": 1}}, "unknown size 'm'; expected one of: n"),
        ({"sizes": {"n": 0}}, "size n: expected a whole number of at least 1, found 0"),
        ({"sizes": {"n": 1.5}}, "size n: expected a whole number of at least 1, found 1.5"),
        ({"dtype": "float64"}, "dtype float64 is not among the space's dtypes: int32, float32;"),
    ],
)
def test_an_impossible_problem_is_refused(spec, arguments, message):
    with pytest.raises(InputError, match=message):
        problem_of(spec, GPU, **arguments)


def test_values_hold_every_name_that_an_expression_may_read(space, spec):
    values = space.values(spec.default, {"n": 100})
    assert (values["n"], values["DTYPE"], values["device.warp_size"]) == (100, "int32", 32)
    assert (values["BLOCK_SIZE"], values["PER_BLOCK"], values["BLOCKS"]) == (64, 64, 2)
    assert space.values(spec.default)["n"] == 1_048_576


def test_launches_follow_the_sizes_and_skip_steps_by_when(space, spec):
    first, second = space.launches(spec.default)
    assert first == Launch("reduce", (16_384, 1, 1), (64, 1, 1), 4, ("x", "partial", "n"))
    assert second == Launch("finish", (1, 1, 1), (32, 1, 1), 0, ("partial", "sum"))
    assert [launch.grid for launch in space.launches(spec.default, {"n": 1})] == [(1, 1, 1)]


def test_macros_name_the_chosen_values(space, spec):
    assert space.macros(with_changes(spec.default, ALGORITHM="shuffle", UNROLL=True)) == {
        "DTYPE": "int",
        "DTYPE_INT32": 1,
        "ALGORITHM_TREE": 1,
        "ALGORITHM_SHUFFLE": 2,
        "ALGORITHM": "ALGORITHM_SHUFFLE",
        "BLOCK_SIZE": 64,
        "VECTOR": 1,
        "UNROLL": 1,
    }


def test_the_nearest_of_many_configurations_is_found_without_wide_copies_of_all(space):
    rows = np.full((200_000, 4), [1, 2, 1, 1], np.uint8)
    rows[100_000:100_002] = [[0, 0, 0, 1], [0, 1, 0, 1]]
    large = ValidSpace(space.spec, GPU, space.problem, rows)
    tracemalloc.start()
    try:
        nearest = large.nearest(space.spec.default)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert nearest == with_changes(space.spec.default, UNROLL=True)
    assert peak_bytes < rows.nbytes


@pytest.mark.parametrize("most", [1, 2, 3])
def test_neighbours_are_all_that_differ_in_few_parameters_the_fewest_first(space, most):
    def changes(config):
        return sum(space.spec.default[name] != value for name, value in config.items())

    found = space.neighbours(space.spec.default, most)
    assert sorted(map(changes, found)) == [*map(changes, found)]
    assert set(found) == {config for config in space if 1 <= changes(config) <= most}


def test_options_are_flags_with_and_without_values(space, spec):
    assert space.options(spec.default, "cuda") == ("--maxrregcount=32",)
    unrolled = with_changes(spec.default, UNROLL=True)
    assert space.options(unrolled, "cuda") == ("--maxrregcount=32", "--use_fast_math")
    assert space.options(unrolled, "opencl") == ()


def test_constraints_can_be_checked_for_other_sizes(tmp_path):
    spec = load_space(write_space(tmp_path, YAML.replace("PER_BLOCK <= 64 and", "PER_BLOCK <= n and")))
    space = bind(spec, GPU, problem_of(spec, GPU))
    assert space.holds(spec.default, {"n": 64})
    assert not space.holds(spec.default, {"n": 63})


def test_an_impossible_derived_name_is_reported_with_its_reason(tmp_path):
    text = YAML.replace("derived:\n", "derived:\n  HUGE: 2 ** 512\n  BEYOND: HUGE * HUGE\n", 1)
    spec = load_space(write_space(tmp_path, text))
    reason = "a derived name cannot be evaluated: 'HUGE \\* HUGE': the result is too large"
    with pytest.raises(SpaceError, match=reason):
        bind(spec, GPU, problem_of(spec, GPU))
