"""Child processes that really sleep, crash and raise."""

import contextlib
import ctypes
import gc
import os
import signal
import subprocess
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from autotune.errors import ChildDied, ChildRaised, ChildTimeout
from autotune.processes.child import Child, _spares, discard_spares, keep_ready


def add(state, number):
    return state + number


def sleep(state, seconds):
    time.sleep(seconds)


def spawn_and_sleep(state, path):
    grandchild = subprocess.Popen(["sleep", "100"])
    path.write_text(str(grandchild.pid))
    time.sleep(100)


def crash(state):
    ctypes.string_at(0)


def leave(state, code):
    os.write(2, b"last words\n")
    os._exit(code)


def variable(state, name):
    return os.environ[name]


def fail(state):
    raise ValueError("no good")


def send_garbage(state, garbage):
    pipe = next(item for item in gc.get_objects() if isinstance(item, Connection))
    pipe.send_bytes(garbage)


def broken(number):
    raise RuntimeError("cannot start")


def _alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]
    except OSError:
        return False


@pytest.fixture
def child():
    child = Child(int, 40)
    yield child
    child.kill()


def test_calls_share_the_state(child):
    assert child.call(add, 2) == 42
    assert child.call(add, number=3) == 43


def test_a_raise_is_reported_and_the_child_goes_on(child):
    with pytest.raises(ChildRaised, match="ValueError: no good") as error:
        child.call(fail)
    assert error.value.kind == "ValueError" and "fail" in error.value.trace
    assert child.call(add, 2) == 42


def test_a_crash_is_reported_with_its_signal(child):
    with pytest.raises(ChildDied, match="SIGSEGV"):
        child.call(crash)


def test_an_exit_is_reported_with_its_code_and_last_words(child):
    with pytest.raises(ChildDied, match=r"exit code 3.*last words"):
        child.call(leave, 3)


def test_a_timeout_kills_the_whole_process_group(child, tmp_path):
    file = tmp_path / "pid"
    assert child.call(add, 2) == 42  # once it has started
    with pytest.raises(ChildTimeout, match="1 s"):
        child.call(spawn_and_sleep, file, timeout_s=1)
    grandchild = int(file.read_text())
    for _ in range(100):
        if not _alive(grandchild):
            break
        time.sleep(0.02)
    assert not _alive(child.pid) and not _alive(grandchild)


def test_a_factory_that_raises_is_reported_by_the_first_call():
    child = Child(broken, 1)
    with pytest.raises(ChildRaised, match="cannot start"):
        child.call(add, 2)
    child.kill()


def test_a_killed_child_is_a_dead_child(child):
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(ChildDied, match="SIGKILL"):
        child.call(add, 2)
    child.kill()


def scribble(_: int, text: bytes) -> None:
    """Write to every open pipe, as a kernel whose memory is damaged might."""
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(descriptor, text)


@pytest.mark.parametrize("text", [b"hello, this is no length", b"\0\0\0\3abc"])
def test_bytes_that_are_no_answer_end_the_child(child, text):
    with pytest.raises(ChildDied):
        child.call(scribble, text, timeout_s=20)


def test_a_process_that_was_kept_ready_is_taken_once_by_its_kind(tmp_path, monkeypatch):
    keep_ready("sums", 1, ["tests.unit.test_child"])
    try:
        (ready,) = [process.popen.pid for waiting in _spares.values() for process in waiting]
        monkeypatch.chdir(tmp_path)  # a process of another folder would read other files
        assert Child(int, kind="sums").pid != ready
        monkeypatch.undo()
        assert Child(int, kind="other").pid != ready
        child = Child(int, 1, kind="sums", environment={"AUTOTUNE_TEST": "x"})
        assert child.pid == ready and child.call(add, 1, timeout_s=30) == 2
        assert child.call(variable, "AUTOTUNE_TEST", timeout_s=30) == "x"
        assert Child(int, kind="sums").pid != ready
    finally:
        discard_spares()


def test_processes_that_nobody_took_end():
    keep_ready("sums", 2, [])
    pids = [process.popen.pid for waiting in _spares.values() for process in waiting]
    discard_spares()
    assert len(pids) == 2 and not any(map(_alive, pids))


def test_an_answer_that_is_garbage_is_the_end_of_the_child():
    """As a process sends it whose memory a kernel has overwritten."""
    for garbage in (b"", b"\x80garbage", b"cno_such_module\nname\n."):
        child = Child(int, 40)
        with pytest.raises(ChildDied, match="damaged answer"):
            child.call(send_garbage, garbage)
        assert not _alive(child.pid)
