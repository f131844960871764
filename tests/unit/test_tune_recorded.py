"""What a program was recorded to tune is searched with the spaces that are named."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autotune import InputError, tune_all
from autotune.plans.requests import requests_of_tunings
from autotune.recording.tunings import RecordedArray, Tuning, add_tuning

SPACES = Path(__file__).parents[2] / "spaces"
OPTIONS = ("--device", "fake", "--engine", "random", "--budget", "3")
ROWS = RecordedArray("bfloat16", (64, 1000))
CALL = Tuning(
    function="softmax",
    file="/models/net.py",
    triton="3.9.0",
    target="cuda:90",
    key=(1000, "torch.bfloat16", "torch.bfloat16"),
    scalars={"m": 64, "n": 1000},
    arrays={"x": ROWS, "y": ROWS},
    passed=("x", "y", "m", "n"),
    parameters=("ROWS", "BLOCK"),
    configurations=8,
    has_hook=False,
    best={"ROWS": 1, "BLOCK": 1024, "num_warps": 4},
    seconds=2.5,
    digest="",
)


def test_sizes_and_types_come_from_the_calls_and_the_longest_tuning_is_first():
    wide = replace(CALL, scalars={"m": 64, "n": 4096}, key=(4096,), seconds=9.0)
    again = replace(wide, target="cuda:80")
    targets, failures, _ = requests_of_tunings(
        [CALL, wide, again], [SPACES / "triton_softmax.yaml"], "cuda:0"
    )
    assert [(one.sizes, one.dtype, one.device) for one, _ in targets] == [
        ({"m": 64, "n": 4096}, "bfloat16", "cuda:0"),
        ({"m": 64, "n": 1000}, "bfloat16", "cuda:0"),
    ]
    assert failures == []


def test_a_kernel_without_a_space_and_a_call_of_another_kernel_are_named():
    other = replace(CALL, passed=("x",), arrays={"x": RecordedArray("float32", (7,))}, scalars={})
    without = replace(CALL, function="norm")
    targets, failures, _ = requests_of_tunings([other, without], [SPACES / "triton_softmax.yaml"], None)
    assert targets == []
    assert failures == [
        "triton_softmax: the call's arguments are not those of the space",
        "norm: no space launches it; name one, or write one: autotune new /models/net.py --entry norm",
    ]


def test_the_command_says_how_to_begin(folder):
    file = folder.path / "recorded.json"
    add_tuning(file, CALL)
    done = folder.run("search", "--recorded", str(file), *OPTIONS)
    assert done.returncode == 1 and "autotune new /models/net.py --entry softmax" in done.stderr
    done = folder.run("search", "--recorded", str(file), "--wanted", *OPTIONS)
    assert done.returncode == 2 and "--recorded brings its own requests: leave out --wanted" in done.stderr
    done = folder.run("search", "double.yaml", "--recorded", str(file), "--size", "n=3", *OPTIONS)
    assert done.returncode == 2 and "--wanted and --recorded name the problems" in done.stderr


def test_recorded_calls_are_searched(folder, monkeypatch):
    file = folder.path / "recorded.json"
    call = replace(CALL, function="double", scalars={"n": 100}, arrays={"x": RecordedArray("int32", (100,))})
    add_tuning(file, replace(call, passed=("x", "y", "n")))
    done = folder.run("search", "double.yaml", "--recorded", str(file), "--json", *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert [one["sizes"] for one in json.loads(done.stdout)] == [{"n": 100}]
    monkeypatch.chdir(folder.path)
    found = tune_all(["double.yaml"], recorded=file, device="fake", budget=3)
    assert [one.found.task.space.problem.sizes for one in found] == [{"n": 100}]
    with pytest.raises(InputError, match=r"tune_all: recorded=.*: expected None with wanted=True"):
        tune_all(["double.yaml"], recorded=file, wanted=True)
