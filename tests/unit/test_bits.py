"""Bits of results: the same in each run or not, and the same for all served configurations or not."""

import json

import pytest

from autotune import best_config

SOURCE = """\
import os
import numpy as np

def double(grid, block, x, y, n):
    noise = np.frombuffer(os.urandom(1), np.uint8)[0] * 1e-7 if B == 2 else 0
    y.view("float32")[:n] = 2 * x.view("float32")[:n] * np.float32(1 + (A // 4) * 1e-6 + noise)
    return (A - 5) ** 2 + B + 1.0 if n > 1500 else A
"""


@pytest.fixture
def floats(folder):
    folder.write(SOURCE)
    folder.edit("dtypes: [int32]", "dtypes: [float32]")
    folder.edit(
        "dtype: int32, shape: [n], role: in, fill: {integers: [-100, 100]}",
        "dtype: float32, shape: [n], role: in, fill: {uniform: [0, 1]}",
    )
    folder.edit("dtype: int32, shape: [n], role: out", "dtype: float32, shape: [n], role: out")
    folder.edit("rtol: 0, atol: 0", "rtol: 1e-3, atol: 1e-5")
    return folder


def bits(folder, *options):
    return folder.run("check", "double.yaml", "--device", "fake", "--bits", *options)


def test_bits_that_differ_between_runs_are_an_error(floats):
    done = bits(floats, "--config", "A=1", "--config", "A=2", "--config", "A=4", "--config", "B=2")
    assert done.returncode == 1 and "wrong or not repeatable: 1 of 4 configurations" in done.stderr
    lines = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert lines == ["result 1", "result 1", "result 2", "varies", lines[-1]]
    assert (
        "configurations give different bits" in done.stdout
        and "bits of y differ between 10 runs" in done.stdout
    )


def test_all_configurations_that_the_cache_serves_are_compared(floats):
    assert bits(floats).returncode == 2  # nothing is served yet
    for n in ("1000", "2000"):
        floats.search("--size", f"n={n}", "--engine", "exhaustive", "--budget", "18")
    found = json.loads(bits(floats, "--json").stdout)
    assert [one["config"]["A"] for one in found] == [1, 5] and not any(one["unsteady"] for one in found)
    assert found[0]["sha256"]["y"] != found[1]["sha256"]["y"]


def test_a_wrong_configuration_has_no_bits(floats):
    floats.write(SOURCE.replace("2 * x", "(3 if A == 3 else 2) * x"))
    done = bits(floats, "--config", "A=3", "--config", "A=1")
    assert done.returncode == 1 and "wrong     A=3" in done.stdout
    assert bits(floats, "--config", "A=1", "--strength").returncode == 2


def test_the_digest_is_that_of_the_choice_whatever_led_to_it(folder):
    first = folder.search("--budget", "18", "--engine", "exhaustive")
    cache = folder.path / "cache"
    exact, near = (best_config("double", "fake-gpu", n=n, cache=cache) for n in (1000, 1001))
    assert exact.digest == near.digest and exact.match != near.match
    default = best_config("double", "fake-gpu", n=1000, cache=cache, data="other") if False else None
    assert default is None and first["config"] == dict(exact)
    shown = json.loads(
        folder.run("best", "double", "--device", "fake-gpu", "--size", "n=1000", "--json").stdout
    )
    assert shown["digest"] == exact.digest
