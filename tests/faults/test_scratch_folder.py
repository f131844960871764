"""Temporary folders of a run that is killed: gone after the next run, which leaves those of others alone."""

import os
import signal

import pytest

from tests.conftest import KERNEL, wait_until

HANGS = """\
import pathlib, subprocess, tempfile, time

def double(grid, block, x, y, n):
    tempfile.mkstemp()
    subprocess.Popen(["sh", "-c", "mktemp; touch began; exec sleep 600"])
    time.sleep(600)
"""
SEARCH = ("search", "double.yaml", "--device", "fake", "--fresh", "--timeout", "600", "--journal")


def _started(folder, temporary, journal):
    """A search that has its folder and is at work until it is stopped."""
    folder.write(HANGS)
    began = folder.path / "began"
    began.unlink(missing_ok=True)
    process = folder.start(*SEARCH, journal, TMPDIR=str(temporary))
    wait_until(lambda: began.exists() or process.poll() is not None)
    assert process.poll() is None
    return process


def test_the_next_run_removes_what_a_killed_one_left_and_nothing_else(folder, temporary):
    others = [temporary / "autotune-of-mine", temporary / "autotune-scratch-of-my-own"]
    for other in others:
        other.mkdir()
    killed = _started(folder, temporary, "killed.jsonl")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    wait_until(lambda: len(list(temporary.iterdir())) == 3)  # that of its child processes goes with them
    (left,) = set(temporary.iterdir()) - {*others}

    alive = _started(folder, temporary, "alive.jsonl")
    assert not left.exists()
    used = set(temporary.iterdir()) - {*others}
    assert len(used) == 2 and any(file.is_file() for path in used for file in path.rglob("*"))
    folder.write(KERNEL)
    assert folder.run(*SEARCH, "third.jsonl", TMPDIR=str(temporary)).returncode == 0
    assert set(temporary.iterdir()) == {*others, *used}
    alive.terminate()
    alive.communicate()
    assert set(temporary.iterdir()) == {*others}


def test_processes_that_a_time_limit_ends_leave_nothing(folder, temporary):
    folder.write(HANGS)
    search = (*SEARCH[:-3], "--timeout", "1", "--budget", "2", "--compilers", "1")
    folder.run(*search, TMPDIR=str(temporary))
    assert (folder.path / "began").exists() and list(temporary.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_a_run_that_is_stopped_leaves_nothing(folder, temporary, how):
    process = _started(folder, temporary, "j.jsonl")
    os.kill(process.pid, how)
    _, errors = process.communicate()
    assert process.returncode == 128 + how, errors
    assert list(temporary.iterdir()) == []
