"""The processes of a search on several devices: nobody can connect to them, and they end with it."""

import signal
import time
from contextlib import contextmanager

from tests.conftest import wait_until
from tests.faults.processes_of import MARK, listening, processes_of

HANGS = """\
import pathlib, time

def double(grid, block, x, y, n):
    pathlib.Path("began").touch()
    time.sleep(600)
"""


@contextmanager
def search(folder):
    """A search at work in a kernel that does not end; yields its process and its mark."""
    folder.write(HANGS)
    (folder.path / "temporary").mkdir()
    environment = {"AUTOTUNE_FAKE_DEVICES": "2", "TMPDIR": str(folder.path / "temporary")}
    command = ("search", "double.yaml", "--devices", "fake:0,fake:1", "--timeout", "600")
    process = folder.start(*command, **environment, **{MARK: str(folder.path)})
    try:
        wait_until(lambda: (folder.path / "began").exists() or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        yield process, str(folder.path)
    finally:
        process.kill()
        process.communicate()


def wait_for_the_end(mark):
    """Wait until no process is left, which takes no long time."""
    began_s = time.monotonic()
    wait_until(lambda: not processes_of(mark))
    assert time.monotonic() - began_s < 20


def test_none_listens_and_all_end_when_the_search_is_killed(folder):
    with search(folder) as (process, mark):
        found = processes_of(mark)
        assert len(found) > 3  # the search, its fork server and two device processes
        assert not any(listening(pid) for pid in found)
        process.kill()
        process.wait()
        wait_for_the_end(mark)
    temporary = folder.path / "temporary"
    assert all(path.name.startswith("autotune-scratch-") for path in temporary.iterdir())
    assert folder.run("devices", TMPDIR=str(temporary)).returncode == 0
    assert list(temporary.iterdir()) == []


def test_they_end_with_the_terminal(folder):
    with search(folder) as (process, mark):
        for _ in range(2):  # one from the terminal, one from its shell
            process.send_signal(signal.SIGHUP)
        _, errors = process.communicate()
        assert process.returncode == 128 + signal.SIGHUP, errors
        assert errors.endswith("autotune: interrupted; the same command resumes\n")
        wait_for_the_end(mark)
    assert list((folder.path / "temporary").iterdir()) == []
