"""The temporary folder of a run that is killed: gone after the next run, and a living run's is left alone."""

import os
import signal

import pytest

from tests.conftest import KERNEL, wait_until

HANGS = """\
import pathlib, time

def double(grid, block, x, y, n):
    pathlib.Path("began").touch()
    time.sleep(600)
"""
SEARCH = ("search", "double.yaml", "--device", "fake", "--fresh", "--timeout", "600", "--journal")


@pytest.fixture
def temporary(tmp_path):
    """A folder for temporary files that only these runs use."""
    path = tmp_path / "temporary"
    path.mkdir()
    return path


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
    (left,) = set(temporary.iterdir()) - {*others}
    (left / "of-a-compiler").write_text("x")

    alive = _started(folder, temporary, "alive.jsonl")
    assert not left.exists()
    (used,) = set(temporary.iterdir()) - {*others}
    folder.write(KERNEL)
    assert folder.run(*SEARCH, "third.jsonl", TMPDIR=str(temporary)).returncode == 0
    assert used.exists()
    alive.terminate()
    alive.communicate()
    assert set(temporary.iterdir()) == {*others}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=lambda how: how.name)
def test_a_run_that_is_stopped_leaves_nothing(folder, temporary, how):
    process = _started(folder, temporary, "j.jsonl")
    os.kill(process.pid, how)
    _, errors = process.communicate()
    assert process.returncode == 128 + how, errors
    assert list(temporary.iterdir()) == []
