"""The valid rows left to ask for: each is given out once, the nearest first."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from autotune.searchers.optuna_search import FreeRows

SIZES = (3, 4, 2)


@st.composite
def rows_and_points(draw):
    point = st.tuples(*(st.integers(0, size - 1) for size in SIZES))
    rows = sorted(draw(st.sets(point, min_size=1, max_size=20)))
    return rows, draw(st.lists(point, min_size=len(rows), max_size=len(rows)))


def hamming(row, point):
    return sum(a != b for a, b in zip(row, point, strict=True))


@given(rows_and_points(), st.integers(0, 99))
def test_each_row_is_taken_once_and_none_left_is_nearer(case, seed):
    rows, points = case
    free = FreeRows(np.array(rows, dtype=np.uint8), np.random.default_rng(seed), ordered=False)
    left = set(range(len(rows)))
    for point in points:
        row = free.take_nearest(point)
        assert row in left
        assert hamming(rows[row], point) == min(hamming(rows[other], point) for other in left)
        left.remove(row)
    assert not left and free.count == 0


def test_ordered_positions_are_compared_as_shares_of_their_range():
    rows = np.array([[0, 2], [5, 0], [3, 0], [10, 1]], dtype=np.uint8)
    free = FreeRows(rows, np.random.default_rng(0), ordered=True)
    assert [free.take_nearest((0, 0)) for _ in rows] == [2, 1, 0, 3]


def test_the_seed_breaks_ties():
    rows = np.array([[position, 1] for position in range(50)], dtype=np.uint8)
    taken = [
        FreeRows(rows, np.random.default_rng(seed), ordered=False).take_nearest((60, 1)) for seed in range(9)
    ]
    again = [
        FreeRows(rows, np.random.default_rng(seed), ordered=False).take_nearest((60, 1)) for seed in range(9)
    ]
    assert taken == again and len(set(taken)) > 1


def test_any_row_is_one_that_is_left():
    free = FreeRows(np.arange(40, dtype=np.uint8).reshape(20, 2), np.random.default_rng(0), ordered=False)
    assert sorted(free.take_any() for _ in range(20)) == list(range(20))
