"""`reference(inputs, sizes, indices)`: a slow reference computes a sample of a large output's elements."""

import numpy as np
import pytest

from autotune.problem.sampling import sample_indices
from autotune.problem.workload import Array

REFERENCE = """\
def reference(inputs, sizes, indices):
    with open("asked", "a") as file:
        print(sizes["n"], len(indices["y"]), file=file)
    return {"y": 2 * inputs["x"][indices["y"]]}
"""
KERNEL = """\
def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    if A == 5 and n > 50_000:
        WRONG
    return (A - 5) ** 2 + B + 1.0
"""


@pytest.fixture
def sampled(folder):
    folder.edit("default: {n: 1000}", "default: {n: 100_000}")
    folder.edit("{n: 17}", "{n: 4099}")
    (folder.path / "reference.py").write_text(REFERENCE)
    folder.write(KERNEL.replace("WRONG", "pass"))
    return folder


def test_all_of_a_small_output_is_asked_for_and_a_part_of_a_large_one(sampled):
    assert sampled.search("--budget", "4")["compared"]
    asked = {tuple(map(int, line.split())) for line in (sampled.path / "asked").read_text().splitlines()}
    few = {count for size, count in asked if size == 100_000}
    assert {(1, 1), (4099, 4099)} <= asked and few and all(960 < count <= 1024 for count in few)


@pytest.mark.parametrize(
    "wrong",
    [
        'y.view("int32")[n - 1] += 1',  # the last
        'y.view("int32")[:] = 0x5a5a5a5a',
        'y.view("int32")[40_000:40_300] += 3',  # a part
    ],
)
def test_what_is_wrong_in_the_sample_is_found(sampled, wrong):
    sampled.write(KERNEL.replace("WRONG", wrong))
    result = sampled.search("--engine", "exhaustive", "--dump-wrong", "wrong")
    assert result["config"] == {"A": 4, "B": 0}
    shown = sampled.run("show", "double", "--status", "wrong_result").stdout
    assert "of a sample of 1,0" in shown
    dumped = sampled.path / "wrong" / "wrong-1"
    indices, found, expected = (
        np.load(dumped / f"y.{name}.npy") for name in ("indices", "found", "expected")
    )
    assert indices.shape == found.shape == expected.shape and (found != expected).any()


def test_an_output_that_is_never_written_is_told(sampled):
    sampled.write(KERNEL.replace("WRONG", "pass").replace("y.view", "if A == 1 or n < 50_000: y.view", 1))
    assert sampled.search("--engine", "exhaustive")["config"] == {"A": 1, "B": 0}
    assert "y was never written" in sampled.run("show", "double", "--status", "wrong_result").stdout


def test_a_reference_that_returns_all_elements_is_told_what_to_return(sampled):
    (sampled.path / "reference.py").write_text(REFERENCE.replace('[indices["y"]]', ""))
    done = sampled.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "`: reference() returned an array of shape [100000] for y; expected 1,0" in last
    assert "elements, those at the flat indices in indices['y'] (at n=100000)" in last


def test_a_sample_holds_both_ends_and_something_of_every_part():
    array = Array("y", "float32", (300, 1000), "out", None)
    indices = sample_indices(array, 1)
    assert {0, 31, 299_999 - 31, 299_999} <= set(indices) and len(indices) <= 1024
    assert np.diff(indices).min() > 0 and np.diff(indices).max() < 2 * 300_000 / 960 + 2
    assert (sample_indices(array, 1) == indices).all() and not np.array_equal(
        indices, sample_indices(array, 2)
    )
