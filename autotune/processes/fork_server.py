"""A process that imports modules once and starts each child as a copy of itself, which takes milliseconds.

The server only imports, forks and waits: it has one thread, and it opens no device. It runs nothing of its
caller's program. It ends when its caller does, and its children end with it.

Each child has a temporary folder of its own, in one of the server: what it leaves there, or a compiler that
was killed with it, is gone after its end.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import os
import pickle
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from socket import AF_UNIX, SOCK_SEQPACKET, recv_fds, send_fds, socket, socketpair
from typing import Any, NoReturn, TypeAlias

from autotune.core import timeline
from autotune.processes.scratch_folder import locked_folder, remove

_PR_SET_PDEATHSIG = 1
_MAX_MESSAGE_BYTES = 2**16
_CALLER_CHECK_S = 0.5
_MAX_END_S = 1.0  # of a server, which is waited for; it ends after what it imports at the moment
_BOOT = """
import sys
sys.path[:] = {path!r}
from autotune.processes import child, fork_server
fork_server.run({fd}, {parent}, {scratch!r}, child.serve)
"""
_WRAPPED_BOOT = """
import sys
sys.path[:] = {path!r}
from multiprocessing.connection import Connection
from autotune.processes.child import serve
serve(Connection({pipe}))
"""


AnyConnection: TypeAlias = "Connection[Any, Any]"


@dataclass(frozen=True)
class _Fork:
    """Start a child; four files come with the request: its pipe, its output, its folder and its last pipe.

    With a wrapper, another program runs the child, under changed environment variables.
    """

    wrapper: Sequence[str]
    variables: Mapping[str, str | None]


class ForkServer:
    """The caller's side of a server. Its methods raise ConnectionError if the server has ended."""

    def __init__(self) -> None:
        """Start the server, and wait for nothing."""
        self._requests, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        self._scratch, locked = locked_folder()
        self._own = cold_variables(self._scratch)
        self._environment = os.environ | self._own
        self._caller = os.getpid()
        boot = _BOOT.format(path=sys.path, fd=theirs.fileno(), parent=self._caller, scratch=self._scratch)
        self.process = subprocess.Popen(
            [sys.executable, "-c", boot],
            pass_fds=[theirs.fileno(), locked],  # the folder stays locked as long as any of them lives
            env=self._environment,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        os.close(locked)
        atexit.register(self.close)

    def close(self) -> None:
        """End the server with its children, and wait until their temporary files are gone."""
        if self._caller == os.getpid():  # not in a fork of the caller
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_MAX_END_S)
            remove(self._scratch)

    @property
    def is_usable(self) -> bool:
        """True if it runs and belongs to this process, not to one that this is a fork of."""
        return self._caller == os.getpid() and self.process.poll() is None

    def load(self, modules: Sequence[str]) -> None:
        """Import modules in the background, for the children to come."""
        self._requests.send(pickle.dumps(tuple(modules)))

    def fork(self, wrapper: Sequence[str], pipe: int, output: int, ended: int) -> None:
        """Start a child in the background, in the present folder; a `wrapper` is a command line that runs it.

        It serves through `pipe`, and prints to `output`. `ended` is an end of a pipe. Through it the server
        sends the child's process id, and its exit code once it has ended. Until the caller closes the other
        end, no other process gets its process id.
        """
        folder = os.open(".", os.O_PATH)
        try:
            request = pickle.dumps(_Fork(wrapper, self.changed_variables() if wrapper else {}))
            send_fds(self._requests, [request], [pipe, output, folder, ended])
        finally:
            os.close(folder)

    def changed_variables(self) -> dict[str, str | None]:
        """The environment variables that changed since the server started; None for one that is gone."""
        before, now = self._environment, os.environ | self._own
        gone: dict[str, str | None] = dict.fromkeys(before.keys() - now.keys())
        return gone | dict(now.items() - before.items())


class ForkedProcess:
    """A child of the server, with what `subprocess.Popen` offers of one; several threads may use it."""

    returncode = -signal.SIGKILL  # as long as nothing else is known: it ends with the server

    def __init__(self, ended: AnyConnection) -> None:
        """`ended` is the caller's end of the pipe of that name of `ForkServer.fork`."""
        self._ended = ended
        self._has_announced = self._has_ended = False
        self._pid: int | None = None
        self._announcing, self._waiting = threading.Lock(), threading.Lock()

    @property
    def pid(self) -> int | None:
        """Its process id, once it has started; None if it could not be started."""
        with self._announcing:
            if not self._has_announced:
                self._ended.poll(None)  # if this is interrupted, the next call waits again
                self._has_announced = True
                try:
                    self._pid = self._ended.recv()
                except (EOFError, OSError):  # it could not be started
                    pass
                except BaseException:  # interrupted: what is left in the pipe may be half a message
                    self._ended.close()
                    raise
        return self._pid

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code; raises subprocess.TimeoutExpired."""
        with self._waiting:
            if self.pid is not None and not self._has_ended:
                if not self._ended.poll(timeout):
                    raise subprocess.TimeoutExpired("child", timeout or 0.0)
                with suppress(EOFError, OSError):  # the server has ended
                    self.returncode = self._ended.recv()
                self._has_ended = True
        return self.returncode

    def release(self) -> None:
        """Let another process get its process id; called when nothing will be sent to its group any more."""
        self._ended.close()


_running: ForkServer | None = None
_starting = threading.Lock()


def fork_server() -> ForkServer:
    """The server of this process; started at its first use, and again after its end."""
    global _running
    with _starting:
        if _running is None or not _running.is_usable:
            _running = ForkServer()
        return _running


def preload(modules: Sequence[str]) -> None:
    """Import modules in the background, once: the children that need them start faster.

    Those that cannot be imported are left out. None may open a device.
    """
    with suppress(ConnectionError):  # the next child starts another server
        fork_server().load(modules)


def fork(wrapper: Sequence[str], pipe: int, output: int, ended: int) -> ForkServer:
    """Start a child as `ForkServer.fork` does; a server that ended is started again, and returned."""
    used = fork_server()
    try:
        used.fork(wrapper, pipe, output, ended)
    except ConnectionError:
        used.process.wait()
        used = fork_server()
        used.fork(wrapper, pipe, output, ended)
    return used


def run(descriptor: int, parent: int, scratch: str, serve: Callable[[AnyConnection], None]) -> None:
    """Run in the server, and in each child, where `serve` is called with its pipe."""
    timeline.begin("fork server")  # its imports are in the timelines that its children send
    requests = socket(fileno=descriptor)
    children = _Children(scratch)
    _end_with(parent, children)
    while True:
        ready = select.select([requests, *children.awaited], [], [])[0]
        children.attend(ready)
        if requests not in ready:
            continue
        data, descriptors, _, _ = recv_fds(requests, _MAX_MESSAGE_BYTES, 4)
        if not data:
            children.end()
        request = pickle.loads(data)
        if not isinstance(request, _Fork):
            _import(request)
            continue
        server, (pipe, output, folder, ended) = os.getpid(), descriptors
        pid = _fork()
        if pid == 0:
            requests.close()
            children.close()
            os.close(ended)
            _become_child(server, output, folder, scratch)
            if request.wrapper:
                _run_wrapped(request, pipe)
            serve(Connection(pipe))
            return
        for received in (pipe, output, folder):
            os.close(received)
        if pid is None:
            os.close(ended)
        else:
            children.add(pid, Connection(ended))


class _Children:
    """The children of the server, the pipes to their callers, and the folder of their temporary files."""

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self.running: dict[int, AnyConnection] = {}
        self._ended: dict[AnyConnection, int] = {}  # not reaped: the caller may still kill its process group
        self._deaths, self._wakeup = _wake_at_deaths()

    @property
    def awaited(self) -> list[socket | AnyConnection]:
        """Handles that become readable when a child has ended, or its caller has closed the pipe."""
        return [self._deaths, *self._ended]

    def add(self, pid: int, caller: AnyConnection) -> None:
        """Tell the caller the process id of a new one."""
        self.running[pid] = caller
        with suppress(ConnectionError):  # nobody waits for it
            caller.send(pid)

    def attend(self, ready: Collection[socket | AnyConnection]) -> None:
        """Do what those that can be read ask for."""
        for caller in self._ended.keys() & set(ready):
            self._reap(caller)
        if self._deaths in ready:
            self._deaths.recv(_MAX_MESSAGE_BYTES)
            self._tell()

    def end(self) -> NoReturn:
        """Kill all, with what they have started themselves, such as compilers, and end the server."""
        for pid in (*self.running, *self._ended.values()):
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        remove(self._scratch)
        os._exit(0)

    def close(self) -> None:
        """Close everything, in a child."""
        signal.set_wakeup_fd(-1)
        opened: list[socket | AnyConnection] = [
            self._deaths,
            self._wakeup,
            *self.running.values(),
            *self._ended,
        ]
        for end in opened:
            end.close()

    def _tell(self) -> None:
        """Send the exit codes of those that have ended, negative for a signal."""
        for pid in list(self.running):
            end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if end is not None:
                caller = self.running.pop(pid)
                self._ended[caller] = pid
                with suppress(ConnectionError):  # nobody waits for it
                    caller.send(end.si_status if end.si_code == os.CLD_EXITED else -end.si_status)

    def _reap(self, caller: AnyConnection) -> None:
        """Let the process id of an ended child be used again: its caller has closed the pipe."""
        pid = self._ended.pop(caller)
        shutil.rmtree(_folder_of(pid, self._scratch), ignore_errors=True)  # what is left goes with the server
        os.waitpid(pid, 0)
        caller.close()


def cold_variables(scratch: str) -> dict[str, str]:
    """Environment variables that disable the drivers' caches and keep temporary files in a folder.

    PoCL lists no device if it cannot write its cache, for example in a read-only home. pyopencl reads its
    variable when it is imported.
    """
    return {
        "PYOPENCL_NO_CACHE": "1",
        "CUDA_CACHE_DISABLE": "1",
        "POCL_CACHE_DIR": scratch,
        "TMPDIR": scratch,
    }


def _folder_of(pid: int, scratch: str) -> str:
    """The temporary folder of a child."""
    return str(Path(scratch, str(pid)))


def set_variables(changes: Mapping[str, str | None]) -> None:
    """Set environment variables of this process; None removes one."""
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def die_with_parent(parent: int) -> None:
    """Ask the system to kill this process when its parent dies, even by kill -9."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _end_with(caller: int, children: _Children) -> None:
    """End when the caller asks for it, and soon after one that is killed.

    Also if its copies keep the socket open, and in an import.
    """

    def look(*_: Any) -> None:
        if os.getppid() != caller:
            children.end()

    signal.signal(signal.SIGTERM, lambda *_: children.end())
    signal.signal(signal.SIGALRM, look)
    signal.siginterrupt(signal.SIGALRM, False)  # what is imported need not know of it
    signal.setitimer(signal.ITIMER_REAL, _CALLER_CHECK_S, _CALLER_CHECK_S)


def _import(modules: Sequence[str]) -> None:
    for module in modules:
        # the child imports it again, and reports what is wrong
        with suppress(Exception), timeline.span(f"import {module}"):
            importlib.import_module(module)


def _wake_at_deaths() -> tuple[socket, socket]:
    """A socket that can be read whenever a child has ended, and the one that is written then."""
    deaths, wakeup = socketpair()
    wakeup.setblocking(False)
    signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # else the signal is ignored and wakes nobody
    return deaths, wakeup


def _fork() -> int | None:
    """Fork, as `os.fork` does; None if the system refuses. The child leads its process group at once."""
    gc.freeze()  # else the child's garbage collector would touch, and so copy, the server's memory
    with warnings.catch_warnings():
        # about threads: numpy's linear algebra stops its own for a fork and starts them again when needed
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            pid = os.fork()
        except OSError:  # out of memory, say; the caller sees pipes that are closed
            return None
    if pid:
        with suppress(OSError):  # it has ended
            os.setpgid(pid, pid)
    return pid


def _become_child(server: int, output: int, folder: int, scratch: str) -> None:
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM):  # a fork has no timer
        signal.signal(number, signal.SIG_DFL)
    os.setpgid(0, 0)
    die_with_parent(server)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.fchdir(folder)
    os.close(output)
    os.close(folder)
    tempfile.tempdir = _folder_of(os.getpid(), scratch)  # what the server imports may have asked for its own
    Path(tempfile.tempdir).mkdir(mode=0o700)
    set_variables(cold_variables(tempfile.tempdir))


def _run_wrapped(request: _Fork, pipe: int) -> NoReturn:
    """Go on as another program, which runs Python again with the same pipe."""
    set_variables(request.variables)
    os.set_inheritable(pipe, True)
    boot = _WRAPPED_BOOT.format(path=sys.path, pipe=pipe)
    try:
        os.execvp(request.wrapper[0], [*request.wrapper, sys.executable, "-c", boot])
    except OSError as error:
        sys.exit(f"{request.wrapper[0]}: {error.strerror}")
