"""The histogram: its ladder, its reference, and every landmark on data on which atomics meet."""

import json

import numpy as np
import pytest

from tests.conftest import run_in_process
from tests.kernel_space import CPU, GPU, findings, invalid_landmarks, reference_module, spec_of, steps

SPEC = spec_of("bin_counts")


def test_the_landmarks_are_valid_and_in_order():
    assert invalid_landmarks(SPEC) == []
    assert steps(SPEC) == sorted(steps(SPEC)) and set(steps(SPEC)) == set(range(5))


@pytest.mark.parametrize("device", [GPU, CPU], ids=["gpu", "cpu"])
def test_lint_finds_nothing_but_the_limit_of_other_devices(device):
    assert {item.subject for item in findings(SPEC, device)} <= {
        "BLOCK_SIZE <= device.max_threads_per_block",
        '4 * COPIES * (bins if PRIVATE == "dynamic" else 256) <= device.shared_bytes_per_block',
    }


@pytest.mark.parametrize(("data", "largest"), [("even", 0.1), ("skewed", 0.55), ("equal", 1)])
def test_the_data_have_as_many_equal_values_as_they_say(data, largest):
    module = reference_module(SPEC)
    sizes = {"n": 10_000, "bins": 100}
    counts = module.reference(module.inputs(sizes, np.random.default_rng(0), data), sizes)["counts"]
    assert counts.sum() == 10_000 and counts.shape == (100,)
    assert largest / 10 < counts.max() / 10_000 <= largest


@pytest.mark.parametrize("data", SPEC.data[1:])
def test_every_landmark_counts_exactly_where_atomics_meet(tmp_path, data):
    words = ("--device", "opencl", "--data", data, "--size", "n=5000", "--json")
    done = run_in_process(tmp_path, "run", "bin_counts", "--landmarks", *words)
    assert done.returncode == 0, done.stderr
    assert {(row["step"], row["status"]) for row in json.loads(done.stdout)} == {
        (landmark.name, "ok") for landmark in SPEC.landmarks
    }
