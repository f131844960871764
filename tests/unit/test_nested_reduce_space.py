"""The nested reduction's space: its variants, its limits, and who refuses it."""

from dataclasses import replace

import numpy as np
import pytest

from tests.kernel_space import GPU, bound, reference_of, spec_of

SPEC = spec_of("nested_reduce")
CUDA = replace(GPU, backend="cuda")
PENDING_LAUNCHES = 2048  # the device runtime's default


@pytest.fixture(scope="module")
def space():
    return bound(SPEC, CUDA)


def test_every_way_of_nesting_is_a_landmark(space):
    named = {landmark.config["NESTING"] for landmark in SPEC.landmarks}
    assert named == set(SPEC.parameters[0].values)
    for landmark in SPEC.landmarks:
        assert space.why_invalid(landmark.config) == () and landmark.note


def test_no_configuration_has_more_launches_pending_than_the_device_keeps(space):
    for config in space:
        launching = 1 if config["NESTING"] == "grid" else config["BLOCKS"]
        assert 2 * launching <= PENDING_LAUNCHES  # a level that starts, and the one below it
        assert config["BLOCK_SIZE"] % 2 == 0 and config["LEAF"] & (config["LEAF"] - 1) == 0


def test_it_is_cuda_only_and_needs_nvcc(folder, root):
    assert (SPEC.dialect, SPEC.compiler) == ("cuda", "nvcc")
    done = folder.run("search", root / "spaces/nested_reduce.yaml", "--device", "opencl:0")
    assert done.returncode == 2
    assert "written in dialect 'cuda', but device opencl:0 takes 'opencl' or 'portable'" in done.stderr


def test_the_reference_is_that_of_the_reduction():
    large = np.full(3, 2**30, np.int32)
    assert reference_of(SPEC)({"x": large}, {"n": 3})["sum"].tolist() == [3 * 2**30 - 2**32]
