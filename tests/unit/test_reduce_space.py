"""The reduction's space: its size, its ladder, and that its reference is exact."""

import numpy as np
import pytest

from tests.kernel_space import CPU, GPU, bound, findings, invalid_landmarks, reference_of, spec_of, steps

SPEC = spec_of("reduce")
LADDER_STEPS = range(16)  # reduce0 to reduce15


@pytest.mark.parametrize(("device", "expected"), [(GPU, 1500), (CPU, 500)], ids=["gpu", "cpu"])
def test_there_are_enough_valid_configurations(device, expected):
    assert len(bound(SPEC, device)) >= expected


def test_the_landmarks_are_valid_and_cover_the_ladder_in_its_order():
    assert invalid_landmarks(SPEC) == []
    assert steps(SPEC) == sorted(steps(SPEC))
    assert set(steps(SPEC)) == set(LADDER_STEPS)


@pytest.mark.parametrize("n", [1, 1_000_003, 2**30])
@pytest.mark.parametrize("device", [GPU, CPU], ids=["gpu", "cpu"])
def test_the_default_is_valid_for_any_size(device, n):
    assert bound(SPEC, device, n=n).why_invalid(SPEC.default) == ()


@pytest.mark.parametrize("n", [1, 1_000_003, 2**30])
def test_the_launches_of_a_landmark_cover_every_element_once(n):
    space = bound(SPEC)
    for landmark in SPEC.landmarks:
        values = space.values(landmark.config, {"n": n})
        vectors = n // landmark.config["VECTOR_WIDTH"]
        threads = values["BLOCKS"] * landmark.config["BLOCK_SIZE"]
        assert threads * values["SHARE"] >= vectors, landmark.name
        assert threads * max(0, values["SHARE"] - 1) < max(1, vectors), landmark.name


def test_no_shuffle_is_asked_of_a_device_without():
    assert not any(config["USE_SHUFFLE"] or config["TREE"] == "last_warp" for config in bound(SPEC, CPU))


def test_lint_finds_nothing():
    assert findings(SPEC) == ()


def test_the_reference_wraps_integers_and_adds_floats_exactly():
    ticket = np.zeros(1, np.uint32)
    large = np.full(3, 2**30, np.int32)
    assert reference_of(SPEC)({"x": large, "ticket": ticket}, {"n": 3})["sum"].tolist() == [3 * 2**30 - 2**32]
    mixed = np.array([2**25, 1, -(2**25)], np.float32)
    assert reference_of(SPEC)({"x": mixed, "ticket": ticket}, {"n": 3})["sum"].tolist() == [1.0]
