"""A Dask worker that is killed: its trials are measured by others, none is lost and none counts twice."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from autotune.evaluation.journal import read_trials
from tests.conftest import LIMIT_S, wait_until

pytest.importorskip("distributed", reason="needs the extra cluster")

WAITS = """\
import pathlib, time

def double(grid, block, x, y, n):
    while pathlib.Path("j.jsonl").read_text().count('{"trial"') >= 3 and not pathlib.Path("killed").exists():
        time.sleep(0.01)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (A - 5) ** 2 + B + 1.0
"""


def dask_workers(mark):
    """The processes that hold a device: those that Dask's nannies started."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            is_marked = entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes()
            if is_marked and b"spawn_main" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_a_killed_worker_costs_nothing_but_time(folder):
    folder.write(WAITS)
    journal = folder.path / "j.jsonl"
    mark = f"AUTOTUNE_MARK={folder.path}"
    process = folder.start(
        *("search", "double.yaml", "--cluster", "local:2", "--device", "fake", "--journal", "j.jsonl"),
        *("--engine", "random", "--budget", "9", "--timeout", "300"),
        AUTOTUNE_FAKE_DEVICES="2",
        AUTOTUNE_MARK=str(folder.path),
    )
    wait_until(
        lambda: (
            process.poll() is not None or (journal.exists() and journal.read_text().count('{"trial"') >= 3)
        )
    )
    assert process.poll() is None, process.communicate()
    found = dask_workers(mark)
    variables = Path(f"/proc/{found[0]}/environ").read_bytes().split(b"\0")
    assert b"DASK_DISTRIBUTED__DIAGNOSTICS__NVML=False" in variables  # it would disturb what is timed
    os.kill(max(found), signal.SIGKILL)
    (folder.path / "killed").touch()
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert "tried   9 of 17" in out
    rows = [line for line in journal.read_text().splitlines() if line.startswith('{"trial"')]
    trials = read_trials(journal)
    assert len(rows) == len(trials) == 9 and Counter(trial.status.value for trial in trials) == {"ok": 9}
