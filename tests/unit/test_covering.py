"""Sizes for slow checks: redundant large ones are left out, and no kind of block or trip is lost."""

import pytest

from autotune.core.records import Config, Launch
from autotune.core.trials import Problem
from autotune.problem.covering import Domain, at_tiles, covering, size_product
from autotune.problem.workload import Workload

TILE = Config({"TILE": 32, "UNROLL": 1, "MODE": "fast"})


def problem(*launches, **sizes):
    return Workload(Problem(sizes, "int32"), (), (), launches)


def tiled(**sizes):
    (blocks,) = (-(-size // 32) for name, size in sizes.items() if name == "n")
    return problem(Launch("tile", (blocks, 1, 1), (32, 1, 1), 0, ()), **sizes)


def kept(*problems, config=TILE):
    return [one.problem.sizes for one in covering(problems, config)]


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


def further(count, *given):
    checks = [tiled(**sizes) for sizes in given]
    found = at_tiles(checks[:-1], checks[-1], TILE, lambda sizes, place: tiled(**sizes), count)
    return [one.problem.sizes["n"] for one in found]


def test_further_sizes_end_before_at_and_behind_a_tile():
    found = further(6, {"n": 5}, {"n": 1000})
    assert len(found) == 6 and {0, 1, 31} <= {size % 32 for size in found}
    assert found == further(6, {"n": 5}, {"n": 1000}), "another time other ones"


def test_what_is_verified_already_is_not_verified_further():
    assert 33 not in further(3, *({"n": n} for n in (1, 7, 31, 32, 33, 63, 64, 65, 95, 96, 97, 1000)))


def test_sizes_that_divide_otherwise_or_were_equal_are_not_the_spaces_own():
    domain = Domain([{"n": 64, "m": 64}, {"n": 48, "m": 48}])
    assert domain.is_declared({"n": 16, "m": 16})
    assert not domain.is_declared({"n": 16, "m": 32}) and not domain.is_declared({"n": 80, "m": 80})
    assert not domain.is_declared({"n": 17, "m": 17})


def test_a_size_that_launches_a_kernel_of_its_own_is_left_out():
    checks = [tiled(n=5), tiled(n=1000)]
    other = Launch("other", (1, 1, 1), (1, 1, 1), 0, ())
    assert at_tiles(checks[:1], checks[1], TILE, lambda sizes, place: problem(other, **sizes), 3) == []


def pairs(queries, points):
    """A search of the nearest points: each query is compared with each point."""
    blocks = -(-queries // 32)
    return problem(Launch("nearest", (blocks, 1, 1), (32, 1, 1), 0, ()), queries=queries, points=points)


def test_each_size_is_1_beside_others_that_are_not():
    """One row and one column: a kernel may subtract more from a size than it is."""
    given = [pairs(3, 3), pairs(18, 33), pairs(66, 65), pairs(40, 131), pairs(768, 1024)]
    found = at_tiles(given[:-1], given[-1], Config({"X": 8, "Y": 4}), lambda sizes, place: pairs(**sizes), 6)
    sizes = [tuple(one.problem.sizes.values()) for one in found]
    assert any(queries == 1 < points for queries, points in sizes), sizes
    assert any(points == 1 < queries for queries, points in sizes), sizes


def test_sizes_of_which_each_is_large_alone_are_not_large_together():
    given = [pairs(1, 4), pairs(3, 65537), pairs(65537, 5), pairs(4096, 2048)]
    config = Config({"TILE": 512, "GROUP": 256})
    found = at_tiles(given[:-1], given[-1], config, lambda sizes, place: pairs(**sizes), 40)
    assert found and max(size_product(one.problem.sizes) for one in found) <= 4096 * 2048


def test_a_small_space_still_gets_sizes_that_it_does_not_reach():
    assert max(further(40, {"n": 5}, {"n": 1000})) > 1000


@pytest.mark.parametrize(("tile", "group"), [(16, 16), (32, 16)])
def test_a_size_may_be_a_larger_multiple_of_another_one_than_in_the_space(tile, group):
    """Such as that of elements, which makes rows longer than any so far: the tiles do not ask for it."""
    given = [pairs(queries, 16 * queries) for queries in (100, 1024, 16384)]
    config = Config({"TILE": tile, "GROUP": group})
    found = at_tiles(given[:-1], given[-1], config, lambda sizes, place: pairs(**sizes), 6)
    assert max(one.problem.sizes["points"] / one.problem.sizes["queries"] for one in found) > 4 * 16


def test_constraints_leave_out_sizes_and_none_of_the_spaces():
    domain = Domain([{"n": 64, "m": 4}, {"n": 96, "m": 9}])
    assert domain.excluding({"n": 64, "m": 1}) == ["m >= 4"]
    assert domain.excluding({"n": 33, "m": 5}) == ["n >= 64", "n % 32 == 0"]
    assert domain.excluding({"n": 128, "m": 5}) == ["n <= 96"]
    assert Domain([{"n": 4, "m": 4}, {"n": 9, "m": 9}]).excluding({"n": 5, "m": 6}) == ["n == m"]
    assert domain.excluding({"n": 96, "m": 5}) == []
