"""The space of the fused products: its size, both plans of launches, shared memory, its reference."""

import random

import numpy as np
import pytest

from tests.kernel_space import CPU, bound, reference_of, spec_of

SPEC = spec_of("bicgk")


@pytest.fixture(scope="module")
def space():
    return bound(SPEC)


def test_fusion_reads_the_matrix_once_and_fission_twice(space):
    for index in random.Random(0).sample(range(len(space)), 200):
        config = space.config(index)
        launches = space.launches(config)
        reads = [launch.entry for launch in launches if "matrix" in launch.arguments]
        assert reads == (["bicgk"] if config["FUSED"] else ["row_products", "column_products"])


def test_results_are_cleared_before_atomics_and_written_once_otherwise(space):
    for mark in SPEC.landmarks:
        launches = space.launches(mark.config)
        if mark.config["FINISH"] == "atomic":
            assert launches[0].entry == "clear"
            assert {"q", "s"} <= set(launches[0].arguments)
        else:
            writers = [launch.entry for launch in launches if {"q", "s"} & set(launch.arguments)]
            assert writers == ["add_parts", "add_parts"]


def test_both_plans_are_contrasted():
    assert dict(SPEC.contrast) == {"fusion": "FUSED", "fission": "not FUSED"}


def test_no_shuffle_is_asked_of_a_device_without():
    assert not any(config["ROW_SUMS"] == "shuffle" for config in bound(SPEC, CPU))


def test_float32_holds_every_sum_of_the_verified_problems():
    for sizes in (*SPEC.verify_sizes, *SPEC.sizes.values()):
        assert 64 * max(sizes.values()) < 2**24


def test_the_reference_multiplies_from_both_sides():
    inputs = {
        "matrix": np.array([[1, 2, 3], [4, 5, 6]], np.float32),
        "p": np.array([1, 0, -1], np.float32),
        "r": np.array([1, 10], np.float32),
    }
    result = reference_of(SPEC)(inputs, {"rows": 2, "columns": 3})
    assert result["q"].tolist() == [-2, -2] and result["s"].tolist() == [41, 52, 63]
