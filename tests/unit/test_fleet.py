"""One search with several devices: who measures what, and what the journal says of it."""

import json

import pytest

from autotune.evaluation.journal import read_trials

pytest.importorskip("distributed", reason="needs the extra cluster")

WAITING = """\
import time

def double(grid, block, x, y, n):
    time.sleep(0.002)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (A - 5) ** 2 + B + 1.0
"""


@pytest.fixture(autouse=True)
def two_fakes(monkeypatch):
    monkeypatch.setenv("AUTOTUNE_FAKE_DEVICES", "2")


def search(folder, *options):
    done = folder.run("search", "double.yaml", "--devices", "fake:0,fake:1", "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_configuration_is_measured_once_by_either_device(folder):
    folder.write(WAITING)
    found = search(folder, "--journal", "j.jsonl")
    trials = read_trials(folder.path / "j.jsonl")
    rows = (folder.path / "j.jsonl").read_text().count('{"trial"')
    assert rows == len(trials) == found["trials"] == 17
    assert {trial.device.partition("/")[2] for trial in trials} == {"fake:0", "fake:1"}
    assert found["config"] == {"A": 5, "B": 0}
    again = search(folder, "--journal", "j.jsonl")
    assert again["resumed"] == 17 and again["config"] == found["config"]


def test_devices_that_are_unknown_or_that_one_process_must_see_are_refused(folder):
    done = folder.run("search", "double.yaml", "--devices", "fake:0,fake:7")
    assert done.returncode == 2 and "unknown device 'fake:7'" in done.stderr
    folder.edit("verify: {rtol: 0, atol: 0}", "verify: {rtol: 0, atol: 0, full: trusted}")
    done = folder.run("search", "double.yaml", "--devices", "fake:0,fake:1")
    assert done.returncode == 2 and "needs one device" in done.stderr
