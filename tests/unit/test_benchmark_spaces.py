"""Two classical spaces, whose numbers of valid configurations are known from the literature, counted."""

from dataclasses import replace
from pathlib import Path

import pytest

from autotune.compilers.source_text import read_source
from autotune.space import bind, constraint_report, lint, load_space, problem_of
from tests.kernel_space import CPU
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


def test_blocks_that_are_no_whole_warps_are_found_on_a_gpu_and_not_on_a_cpu():
    spec = load_space(SPACES / "block_shapes.yaml")
    source = read_source(spec.source).text
    found = {}
    for device in (GPU, CPU):
        space = bind(spec, device, problem_of(spec, device))
        findings = lint(space, source, constraint_report(space)).mistakes
        found[device.kind] = [one for one in findings if one.kind == "partial_warp"]
    (one,) = found["gpu"]
    assert one.subject == "launch[0].block" and found["cpu"] == []
    assert "a block of 20 x 2 threads is 1.25 warps, and its last warp uses only 8 of 32 lanes" in one.detail


def test_every_held_out_mistake_is_a_variant_of_its_kernel(monkeypatch):
    monkeypatch.syspath_prepend(SPACES.parent)
    from held_out import SET, read_mistakes

    every = read_mistakes()
    assert sum(map(len, every.values())) == 120 + len(every)
    for kernel, mistakes in every.items():
        spec = load_space(SET / f"{kernel}.yaml")
        bound = bind(spec, CPU, problem_of(spec, CPU))
        configs = [bound.config(index) for index in range(len(bound))]
        assert {config["VARIANT"] for config in configs} == {*mistakes} and spec.default["VARIANT"] == 0
        for number, mistake in mistakes.items():
            of_it = [mistake.is_in(config) for config in configs if config["VARIANT"] == number]
            assert any(of_it) and all(of_it) == (not mistake.harmless)
