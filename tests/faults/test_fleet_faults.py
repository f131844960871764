"""A device process or a Dask worker that is killed: its trials run again, and each is in the journal once."""

import os
import signal
from collections import Counter

import pytest

from autotune.evaluation.journal import read_trials
from tests.conftest import LIMIT_S, wait_until
from tests.faults.processes_of import MARK

WAITS = """\
import os, pathlib, time

def double(grid, block, x, y, n):
    own = pathlib.Path(f"{os.getpid()}.new")
    own.write_text(str(os.getpid()))
    own.rename(f"device-{DEVICE}")
    while pathlib.Path("j.jsonl").read_text().count('{"trial"') >= 3 and not pathlib.Path("killed").exists():
        time.sleep(0.01)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (A - 5) ** 2 + B + 1.0
"""


def trial_rows(journal):
    """The journal's complete rows of trials."""
    return [line for line in journal.read_text().split("\n")[:-1] if line.startswith('{"trial"')]


def search_with_a_kill(folder, how, victim, *, again=False):
    """Search with two devices; once three trials are journaled, kill the process that `victim` finds.

    If that was the search itself, start it `again`.
    """
    folder.write(WAITS)
    journal = folder.path / "j.jsonl"
    command = ("search", "double.yaml", *how, "--journal", "j.jsonl", "--engine", "random", "--budget", "9")
    environment = {"AUTOTUNE_FAKE_DEVICES": "2", MARK: str(folder.path)}
    process = folder.start(*command, "--timeout", "300", **environment)
    wait_until(
        lambda: (
            process.poll() is not None or (journal.exists() and journal.read_text().count('{"trial"') >= 3)
        )
    )
    assert process.poll() is None, process.communicate()
    os.kill(victim(process), signal.SIGKILL)
    (folder.path / "killed").touch()
    out, err = process.communicate(timeout=LIMIT_S)
    if again:
        earlier = trial_rows(journal)
        process = folder.run(*command, **environment)
        out, err = process.stdout, process.stderr
        assert trial_rows(journal)[: len(earlier)] == earlier
    assert process.returncode == 0, err
    assert "tried   9 of 17" in out
    trials = read_trials(journal)
    assert len(trial_rows(journal)) == len(trials) == 9 and Counter(
        trial.status.value for trial in trials
    ) == {"ok": 9}


def test_a_killed_search_goes_on_with_its_trials(folder):
    search_with_a_kill(folder, ("--devices", "fake:0,fake:1"), lambda search: search.pid, again=True)


def test_a_killed_device_process_is_replaced_and_its_trial_runs_again(folder):
    search_with_a_kill(
        folder,
        ("--devices", "fake:0,fake:1"),
        lambda _: int((folder.path / "device-1").read_text()),
    )


def test_a_killed_dask_worker_costs_nothing_but_time(folder, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    monkeypatch.setenv("AUTOTUNE_FAKE_DEVICES", "2")
    monkeypatch.chdir(folder.path)
    options = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": ":0", "protocol": "tcp"}
    with distributed.LocalCluster(n_workers=2, **options) as cluster:
        how = ("--cluster", cluster.scheduler_address, "--device", "fake")
        search_with_a_kill(folder, how, lambda _: cluster.workers[1].pid)
