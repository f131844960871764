"""The transpose's space: its size, its ladder, and that the tiles cover every matrix once."""

import random

import numpy as np
import pytest

from tests.kernel_space import bound, reference_of, spec_of

SPEC = spec_of("transpose")


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 259), (1000, 17), (16384, 16384)])
def test_the_tiles_cover_the_matrix_with_none_to_spare(rows, columns):
    space, sizes = bound(SPEC), {"rows": rows, "columns": columns}
    for index in random.Random(0).sample(range(len(space)), 50):
        config = space.config(index)
        values = space.values(config, sizes)
        assert values["DOWN"] * config["TILE_Y"] >= rows > (values["DOWN"] - 1) * config["TILE_Y"]
        assert values["ACROSS"] * config["TILE_X"] >= columns > (values["ACROSS"] - 1) * config["TILE_X"]
        (launch,) = space.launches(config, sizes)
        assert launch.grid == (values["DOWN"] * values["ACROSS"], 1, 1)


def test_every_thread_moves_whole_vectors_both_ways():
    for config in bound(SPEC):
        elements = config["TILE_X"] * config["TILE_Y"]
        assert elements % (config["BLOCK_X"] * config["BLOCK_Y"] * config["VECTOR_WIDTH"]) == 0


def test_the_reference_turns_rows_into_columns():
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert reference_of(SPEC)({"input": matrix}, {})["output"].tolist() == [[0, 3], [1, 4], [2, 5]]
