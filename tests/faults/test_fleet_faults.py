"""A Dask worker that is killed: its trials are measured by others, none is lost and none counts twice."""

import os
import signal
from collections import Counter

import pytest

from autotune.evaluation.journal import read_trials
from tests.conftest import LIMIT_S, wait_until
from tests.faults.processes_of import MARK, listening, processes_of

pytest.importorskip("distributed", reason="needs the extra cluster")

WAITS = """\
import pathlib, time

def double(grid, block, x, y, n):
    while pathlib.Path("j.jsonl").read_text().count('{"trial"') >= 3 and not pathlib.Path("killed").exists():
        time.sleep(0.01)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (A - 5) ** 2 + B + 1.0
"""


def test_a_killed_worker_costs_nothing_but_time(folder):
    folder.write(WAITS)
    journal = folder.path / "j.jsonl"
    process = folder.start(
        *("search", "double.yaml", "--cluster", "local:2", "--device", "fake", "--journal", "j.jsonl"),
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
    found = [pid for pid in processes_of(str(folder.path)) if pid != process.pid and listening(pid)]
    assert len(found) == 2
    os.kill(max(found), signal.SIGKILL)
    (folder.path / "killed").touch()
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert "tried   9 of 17" in out
    rows = [line for line in journal.read_text().splitlines() if line.startswith('{"trial"')]
    trials = read_trials(journal)
    assert len(rows) == len(trials) == 9 and Counter(trial.status.value for trial in trials) == {"ok": 9}
