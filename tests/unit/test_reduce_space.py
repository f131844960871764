"""The reduction's space: its size, its ladder, and that its reference is exact."""

import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotune.devices import backend
from autotune.sources import read_source
from autotune.space import bind, constraint_report, lint, load_space, problem_of

SPEC = load_space(Path(__file__).parents[2] / "spaces" / "reduce.yaml")
(GPU,) = backend("fake").list_devices()
CPU = replace(GPU, name="CPU", backend="opencl", kind="cpu", compute_units=2, warp_size=1, has_shuffle=False)
LADDER_STEPS = range(16)  # reduce0 to reduce15


def _space(device, **sizes):
    return bind(SPEC, device, problem_of(SPEC, device, sizes))


def _reference():
    specification = importlib.util.spec_from_file_location("reduce_reference", SPEC.reference)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.reference


@pytest.mark.parametrize(("device", "expected"), [(GPU, 1500), (CPU, 500)], ids=["gpu", "cpu"])
def test_there_are_enough_valid_configurations(device, expected):
    assert len(_space(device)) >= expected


@pytest.mark.parametrize("landmark", SPEC.landmarks, ids=lambda landmark: landmark.name)
def test_every_landmark_is_valid_on_a_gpu_and_says_what_it_is(landmark):
    assert _space(GPU).why_invalid(landmark.config) == ()
    assert landmark.note


def test_the_landmarks_cover_the_ladder_in_its_order():
    steps = [int(match[1]) for mark in SPEC.landmarks if (match := re.match(r"reduce(\d+)_", mark.name))]
    assert steps == sorted(steps)
    assert set(steps) == set(LADDER_STEPS)


@pytest.mark.parametrize("n", [1, 1_000_003, 2**30])
@pytest.mark.parametrize("device", [GPU, CPU], ids=["gpu", "cpu"])
def test_the_default_is_valid_for_any_size(device, n):
    assert _space(device, n=n).why_invalid(SPEC.default) == ()


@pytest.mark.parametrize("n", [1, 1_000_003, 2**30])
def test_the_launches_of_a_landmark_cover_every_element_once(n):
    space = _space(GPU)
    for landmark in SPEC.landmarks:
        values = space.values(landmark.config, {"n": n})
        vectors = n // landmark.config["VECTOR_WIDTH"]
        threads = values["BLOCKS"] * landmark.config["BLOCK_SIZE"]
        assert threads * values["SHARE"] >= vectors, landmark.name
        assert threads * max(0, values["SHARE"] - 1) < max(1, vectors), landmark.name


def test_no_shuffle_is_asked_of_a_device_without():
    assert not any(config["USE_SHUFFLE"] or config["TREE"] == "last_warp" for config in _space(CPU))


def test_lint_finds_nothing():
    space = _space(GPU)
    assert lint(space, read_source(SPEC.source).text, constraint_report(space)) == ()


def test_the_reference_wraps_integers_and_adds_floats_exactly():
    ticket = np.zeros(1, np.uint32)
    large = np.full(3, 2**30, np.int32)
    assert _reference()({"x": large, "ticket": ticket}, {"n": 3})["sum"].tolist() == [3 * 2**30 - 2**32]
    mixed = np.array([2**25, 1, -(2**25)], np.float32)
    assert _reference()({"x": mixed, "ticket": ticket}, {"n": 3})["sum"].tolist() == [1.0]
