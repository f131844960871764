"""Sizes for slow checks: redundant large ones are left out, and no kind of block or trip is lost."""

from autotune.core.records import Config, Launch
from autotune.core.trials import Problem
from autotune.problem.covering import covering
from autotune.problem.problem_instance import ProblemInstance

TILE = Config({"TILE": 32, "UNROLL": 1, "MODE": "fast"})


def problem(*launches, **sizes):
    return ProblemInstance(Problem(sizes, "int32"), (), (), launches)


def tiled(**sizes):
    (blocks,) = (-(-size // 32) for name, size in sizes.items() if name == "n")
    return problem(Launch("tile", (blocks, 1, 1), (32, 1, 1), 0, ()), **sizes)


def kept(*problems, config=TILE):
    return [one.definition.sizes for one in covering(problems, config)]


def test_a_larger_size_with_the_same_kinds_is_left_out():
    assert kept(tiled(n=4 * 1024), tiled(n=2 * 1024 * 1024)) == [{"n": 4096}]


def test_one_block_some_blocks_and_a_rest_are_kinds_of_their_own():
    sizes = [{"n": 1}, {"n": 32}, {"n": 33}, {"n": 4095}, {"n": 4096}]
    assert kept(*(tiled(**one) for one in sizes)) == sizes
    assert kept(*(tiled(**one) for one in sizes), tiled(n=8191), tiled(n=8192)) == sizes


def test_a_corner_is_no_sum_of_two_edges():
    whole, right, below, corner = ((128, 128), (128, 129), (129, 128), (129, 129))
    sizes = [{"n": n, "m": m} for n, m in (whole, right, below, corner)]
    assert kept(*(tiled(**one) for one in sizes)) == sizes


def test_a_size_that_launches_another_kernel_stays():
    once, twice = Launch("sum", (8, 1, 1), (32, 1, 1), 0, ()), Launch("finish", (1, 1, 1), (32, 1, 1), 0, ())
    assert len(kept(problem(once, n=256 * 1024), problem(once, twice, n=512 * 1024))) == 2


def test_something_always_stays():
    assert kept(tiled(n=100), tiled(n=100)) == [{"n": 100}]
    assert kept() == []
