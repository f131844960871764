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
    pathlib.Path(f"device-{DEVICE}").write_text(str(os.getpid()))
    while pathlib.Path("j.jsonl").read_text().count('{"trial"') >= 3 and not pathlib.Path("killed").exists():
        time.sleep(0.01)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (A - 5) ** 2 + B + 1.0
"""


def search_with_a_kill(folder, how, victim):
    """Search with two devices; once three trials are journaled, kill the process that `victim` finds."""
    folder.write(WAITS)
    journal = folder.path / "j.jsonl"
    process = folder.start(
        *("search", "double.yaml", *how, "--journal", "j.jsonl"),
        *("--engine", "random", "--budget", "9", "--timeout", "300"),
        AUTOTUNE_FAKE_DEVICES="2",
        **{MARK: str(folder.path)},
    )
    wait_until(
        lambda: (
            process.poll() is not None or (journal.exists() and journal.read_text().count('{"trial"') >= 3)
        )
    )
    assert process.poll() is None, process.communicate()
    os.kill(victim(), signal.SIGKILL)
    (folder.path / "killed").touch()
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert "tried   9 of 17" in out
    rows = [line for line in journal.read_text().splitlines() if line.startswith('{"trial"')]
    trials = read_trials(journal)
    assert len(rows) == len(trials) == 9 and Counter(trial.status.value for trial in trials) == {"ok": 9}


def test_a_killed_device_process_is_replaced_and_its_trial_runs_again(folder):
    search_with_a_kill(
        folder,
        ("--devices", "fake:0,fake:1"),
        lambda: int((folder.path / "device-1").read_text()),
    )


def test_a_killed_dask_worker_costs_nothing_but_time(folder, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    monkeypatch.setenv("AUTOTUNE_FAKE_DEVICES", "2")
    monkeypatch.chdir(folder.path)
    options = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": ":0", "protocol": "tcp"}
    with distributed.LocalCluster(n_workers=2, **options) as cluster:
        how = ("--cluster", cluster.scheduler_address, "--device", "fake")
        search_with_a_kill(folder, how, lambda: cluster.workers[1].pid)
