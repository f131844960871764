"""The matrix addition's space: its shapes of blocks, its ladder, its reference."""

import numpy as np
import pytest

from tests.kernel_space import bound, reference_of, spec_of

SPEC = spec_of("matadd")


def test_a_row_and_a_column_of_256_threads_are_both_there():
    shapes = {(mark.config["BLOCK_X"], mark.config["BLOCK_Y"]) for mark in SPEC.landmarks}
    assert {(256, 1), (1, 256)} <= shapes


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 1027), (16384, 16384)])
def test_the_grid_covers_the_matrices(rows, columns):
    space, sizes = bound(SPEC), {"rows": rows, "columns": columns}
    for mark in SPEC.landmarks:
        config = mark.config
        (launch,) = space.launches(config, sizes)
        assert launch.grid[0] * config["BLOCK_X"] * config["WORK_X"] * config["VECTOR_WIDTH"] >= columns
        assert launch.grid[1] * config["BLOCK_Y"] * config["WORK_Y"] >= rows


def test_the_reference_adds_beyond_the_precision_of_the_inputs():
    large, small = np.full((1, 1), 2**24, np.float32), np.ones((1, 1), np.float32)
    assert reference_of(SPEC)({"a": large, "b": small}, {})["c"].tolist() == [[2**24 + 1]]
