"""Searches for every model of a cluster at the same time."""

import pytest

from autotune.devices import listing
from autotune.devices.listing import Listing
from autotune.evaluation.journal import read_trials

TWO_MODELS = """\
def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (1 + DEVICE) * ((A - 5 + DEVICE) ** 2 + B + 1.0)
"""


@pytest.fixture
def scheduler(monkeypatch):
    """The address of a cluster of two workers, and a fake device of each of two models."""
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    monkeypatch.setenv("AUTOTUNE_FAKE_DEVICES", "1,1")
    monkeypatch.setattr(listing, "Listing", Listing)  # not as listed before
    options = {"processes": False, "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=2, protocol="tcp", **options) as cluster:
        yield cluster.scheduler_address


def search(folder, scheduler, *options):
    each = ("--cluster", scheduler, "--device", "fake", "--each-model", "--budget", "9")
    return folder.run("search", "double.yaml", *each, *options)


def test_every_model_is_tuned_informed_by_the_other_and_compared(folder, scheduler):
    folder.write(TWO_MODELS)
    done = search(folder, scheduler, "--engine", "surrogate")
    assert done.returncode == 0, done.stderr
    assert "double on Fake GPU (fake:0)" in done.stdout and "double on Fake GPU 2 (fake:1)" in done.stdout
    assert done.stderr.count("anyone who reaches this scheduler or its workers can run code") == 1
    assert ", starting from 1 other result, in " in done.stdout
    assert "tuned on, run on:  fake-gpu  fake-gpu-2" in done.stdout
    for model, device in (("fake-gpu", "fake:0"), ("fake-gpu-2", "fake:1")):
        trials = read_trials(folder.path / "runs" / f"double.{model}.n1000.int32.jsonl")
        assert {trial.device.partition("/")[2] for trial in trials} == {device}


def test_a_model_that_fails_is_named_and_the_others_are_tuned(folder, scheduler):
    folder.write(TWO_MODELS.replace("2 * x", "(2 + DEVICE) * x"))
    done = search(folder, scheduler, "--engine", "random")
    assert done.returncode != 0 and "1 of 2 models failed: Fake GPU 2: " in done.stderr
    assert "double on Fake GPU (fake:0)" in done.stdout


def test_it_needs_a_cluster_and_a_journal_for_each_model(folder):
    for options in (("--devices", "fake:0"), ("--cluster", "slurm", "--journal", "j.jsonl")):
        done = folder.run("search", "double.yaml", "--each-model", *options)
        assert done.returncode == 2 and "--each-model needs --cluster and one space" in done.stderr
