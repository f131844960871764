"""Child processes that really sleep, crash and raise."""

import contextlib
import ctypes
import gc
import os
import signal
import struct
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import pytest

from autotune.devices import BACKENDS
from autotune.errors import Blame, ChildDied, ChildRaised, ChildTimeout
from autotune.processes.child import Child, kill_all
from autotune.processes.fork_server import ForkedProcess, fork_server, preload
from tests.conftest import LIMIT_S, ROOT, wait_until
from tests.leaving import leave_files


def add(state, number):
    return state + number


def sleep(state, seconds):
    time.sleep(seconds)


def spawn(state):
    return subprocess.Popen(["sleep", "100"]).pid


def crash(state):
    ctypes.string_at(0)


def leave(state, code):
    os.write(2, b"last words\n")
    os._exit(code)


def variable(state, name):
    return os.environ[name]


def loaded(state, names):
    return [name in sys.modules for name in names]


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


def warn_and_crash(state):
    warnings.warn("of a library", stacklevel=1)
    ctypes.string_at(0)


def test_a_warning_of_python_is_not_the_reason_of_a_crash(child):
    with pytest.raises(ChildDied) as raised:
        child.call(warn_and_crash)
    assert "warn" not in str(raised.value)


def test_a_crash_is_reported_with_its_signal(child):
    with pytest.raises(ChildDied, match="SIGSEGV"):
        child.call(crash)


def test_an_exit_is_reported_with_its_code_and_last_words(child):
    with pytest.raises(ChildDied, match=r"exit code 3.*last words"):
        child.call(leave, 3)


def test_a_timeout_kills_the_whole_process_group(child):
    grandchild = child.call(spawn)
    with pytest.raises(ChildTimeout, match="1 s"):
        child.call(sleep, 100, timeout_s=1)
    wait_until(lambda: not _alive(child.pid) and not _alive(grandchild))


def test_a_process_that_does_not_end_is_not_waited_for(child, monkeypatch):
    """As one that hangs in a driver, whom no signal reaches."""
    with monkeypatch.context() as patched:
        patched.setattr("autotune.processes.child.MAX_END_S", 0.01)
        patched.setattr(os, "killpg", lambda *_: None)
        with pytest.raises(ChildTimeout):
            child.call(sleep, 100, timeout_s=0.01)
        kill_all([child])
    assert _alive(child.pid)
    os.killpg(child.pid, signal.SIGKILL)


def test_the_time_limit_of_a_call_begins_when_the_process_has_started(child, monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: 2 * LIMIT_S if child._process._has_announced else 0.0)
    monkeypatch.setattr("autotune.processes.child.time", clock)  # as if the start took that long
    child.call(sleep, 0.1, timeout_s=LIMIT_S)


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
        child.call(scribble, text, timeout_s=LIMIT_S)


def folder_of(state):
    return str(Path.cwd())


def open_drivers(state):
    """The libraries of drivers that the process holds."""
    maps = Path("/proc/self/maps").read_text()
    return [name for name in ("libcuda.so", "libpocl.so", "libnvrtc.so") if name in maps]


def test_a_child_has_the_present_folder_and_variables_of_its_parent(child, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOTUNE_TEST", "parent")
    monkeypatch.delenv("HOME")
    monkeypatch.chdir(tmp_path)
    other = Child(int)
    assert other.call(variable, "AUTOTUNE_TEST", timeout_s=LIMIT_S) == "parent"
    with pytest.raises(ChildRaised, match="HOME"):
        other.call(variable, "HOME")
    assert other.call(folder_of) == str(tmp_path)
    other.kill()
    assert child.call(variable, "HOME")  # it started before


def test_children_share_what_was_loaded_and_no_driver():
    """A driver must not be forked."""
    preload([*(entry.module for entry in BACKENDS.values()), "no.such.module"])
    child = Child(int)
    assert child.call(loaded, ["autotune.devices.opencl", "numpy"], timeout_s=LIMIT_S) == [True, True]
    assert child.call(open_drivers) == []
    child.kill()


@pytest.mark.parametrize("wrapper", [(), ("sh", "-c", 'mktemp; exec "$@"', "sh")], ids=["plain", "wrapped"])
def test_what_a_child_and_its_compilers_leave_is_gone_after_its_end(temporary, wrapper, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/no/such/folder")  # the caller's own is not the child's
    child, other = Child(int, wrapper=wrapper), Child(int)
    (of_other, _), files = other.call(leave_files), child.call(leave_files)
    if wrapper:
        files.append(child.printed().split()[0])
    files = [Path(file) for file in (*files, of_other)]
    assert all(file.exists() and file.is_relative_to(temporary) for file in files)
    child.kill()
    wait_until(lambda: not any(file.exists() for file in files[:-1]))
    assert files[-1].exists()  # the other child lives
    other.kill()
    fork_server().close()
    assert list(temporary.iterdir()) == []


def test_a_library_that_has_asked_for_the_temporary_folder_before_a_child_started_is_no_matter(
    temporary, tmp_path, monkeypatch
):
    (tmp_path / "asks_early.py").write_text("import tempfile\nFOLDER = tempfile.gettempdir()\n")
    monkeypatch.syspath_prepend(tmp_path)
    preload(["asks_early"])
    child = Child(int)
    (file, _) = map(Path, child.call(leave_files))
    child.kill()
    wait_until(lambda: not file.exists())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None], ids=str)
def test_a_caller_that_ends_leaves_no_temporary_file(tmp_path, how):
    """However it ends; if it can, it waits until they are gone."""
    ending = "time.sleep(600)" if how else ""
    program = [sys.executable, "-c", LEAVING.format(ending=ending)]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    caller = subprocess.Popen(program, stdout=subprocess.PIPE, cwd=ROOT, env=environment)
    assert caller.stdout.readline()
    if how:
        assert list(tmp_path.iterdir())
        caller.send_signal(how)
    caller.wait()
    caller.stdout.close()
    if how:
        wait_until(lambda: not list(tmp_path.iterdir()))
    assert list(tmp_path.iterdir()) == []


LEAVING = """
import time
from autotune.processes.child import Child
from tests.leaving import leave_files
child = Child(int)
print(*child.call(leave_files), flush=True)
{ending}
"""


def test_children_start_though_an_import_of_their_server_resets_its_wakeup_file(tmp_path, monkeypatch):
    """As asyncio does in every fork since Python 3.12."""
    reset = "import os, signal\nos.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))\n"
    (tmp_path / "resets_at_fork.py").write_text(reset)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("autotune.processes.fork_server._running", None)
    preload(["resets_at_fork"])
    child = Child(int, 1)
    assert child.call(loaded, ["resets_at_fork"], timeout_s=LIMIT_S) == [True]
    child.kill()
    fork_server().process.kill()


def test_children_end_with_their_server_and_the_next_one_has_another(child):
    assert child.call(add, 2) == 42
    server = fork_server().process
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    with pytest.raises(ChildDied, match="SIGKILL") as error:
        child.call(add, 2)
    assert error.value.blame is Blame.MACHINE
    after = Child(int, 1)
    assert after.call(add, 1, timeout_s=LIMIT_S) == 2 and fork_server().process.pid != server.pid
    after.kill()


def test_the_id_of_a_child_that_died_is_its_own_until_it_is_killed(child):
    """Else its killer could hit a process that has got the same id."""
    pid = child.pid
    os.kill(pid, signal.SIGKILL)
    other = Child(int, 1)
    assert other.call(add, 1, timeout_s=LIMIT_S) == 2
    other.kill()
    assert Path(f"/proc/{pid}").exists()
    child.kill()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_threads_that_kill_a_child_at_once_harm_nothing_else(child):
    server = fork_server().process.pid
    for _ in range(10):
        other = Child(int)
        with ThreadPoolExecutor(3) as threads:
            kills = [threads.submit(other.kill) for _ in range(3)]
        assert [kill.result() for kill in kills] == [None] * 3
    assert child.call(add, 2) == 42 and fork_server().process.pid == server


def test_a_fork_of_the_caller_uses_no_server_of_its_parent(child):
    """As in a program that uses multiprocessing."""
    server = fork_server().process.pid
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:  # it must not go on as a second pytest
            own = Child(int, 1)
            os.write(writer, bytes([own.call(add, 1) == 2, fork_server().process.pid != server]))
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    assert os.read(reader, 2) == b"\1\1"
    assert child.call(add, 2) == 42


PROGRAM = """
import os, time
from autotune.processes.child import Child
from autotune.processes.fork_server import fork_server
from tests.unit.test_child import spawn
child = Child(int)
wrapped = Child(int, wrapper=("sh", "-c", '"$@"; sleep 600', "sh"))
children = [fork_server().process.pid, child.pid, child.call(spawn), wrapped.pid]
if {copies}:
    children.append(os.fork() or os._exit(time.sleep(60)))
print(*children, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("copies", [False, True], ids=["alone", "copied"])
def test_server_and_children_end_with_a_caller_that_is_killed(copies):
    """And what the children started. Also if a copy of the caller keeps its end of the socket open."""
    program = [sys.executable, "-c", PROGRAM.format(copies=copies)]
    caller = subprocess.Popen(program, stdout=subprocess.PIPE, cwd=ROOT)
    pids = [int(word) for word in caller.stdout.readline().split()]
    caller.kill()
    caller.wait()
    caller.stdout.close()
    wait_until(lambda: not any(map(_alive, pids[:4])))
    for copy in pids[4:]:
        os.kill(copy, signal.SIGKILL)


def test_an_interrupt_in_the_middle_of_the_first_message_leaves_no_half_of_it():
    def interrupt(*_):
        raise KeyboardInterrupt

    ended, theirs = Pipe()
    os.write(theirs.fileno(), struct.pack("!i", 5))  # how long the message is
    process = ForkedProcess(ended)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            _ = process.pid
    finally:
        signal.signal(signal.SIGALRM, before)
    assert process.pid is None and ended.closed  # so nothing is killed, and nothing more is read


def test_an_answer_that_is_garbage_is_the_end_of_the_child():
    """As a process sends it whose memory a kernel has overwritten."""
    for garbage in (b"", b"\x80garbage", b"cno_such_module\nname\n."):
        child = Child(int, 40)
        with pytest.raises(ChildDied, match="damaged answer"):
            child.call(send_garbage, garbage)
        assert not _alive(child.pid)


def test_a_child_that_was_killed_leaves_no_open_file(recwarn):
    child = Child(int)
    assert child.call(add, 1) == 1
    child.kill()
    del child
    gc.collect()
    left = [str(one.message) for one in recwarn if one.category is ResourceWarning]
    assert not [text for text in left if "unclosed file" in text], left
