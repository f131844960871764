"""A process that imports modules once and starts each child as a copy of itself, which takes milliseconds.

The server only imports, forks and waits: it has one thread, and it opens no device. It runs nothing of its
caller's program. It ends when its caller does, and its children end with it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from socket import AF_UNIX, SOCK_SEQPACKET, recv_fds, send_fds, socket, socketpair
from types import MappingProxyType
from typing import Any, TypeAlias

_PR_SET_PDEATHSIG = 1
_MAX_MESSAGE_BYTES = 2**16
_PARENT_CHECK_S = 1.0  # for a killed caller that leaves copies of itself, which keep the socket open
_WAIT_STEP_S = 0.005
_BOOT = """
import sys
sys.path[:] = {path!r}
from autotune.processes import child, fork_server
fork_server.run({fd}, {parent}, child.serve)
"""


AnyConnection: TypeAlias = "Connection[Any, Any]"


@dataclass(frozen=True)
class _Load:
    """Import modules, under these environment variables."""

    modules: Sequence[str]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class _Fork:
    """Start a child; its pipe, its output and its folder come with the request."""


@dataclass(frozen=True)
class _Wait:
    """Wait for a child to end; None sets no limit."""

    pid: int
    timeout_s: float | None


class ForkServer:
    """The caller's side of a server. Its methods raise ConnectionError if the server has ended."""

    def __init__(self) -> None:
        """Start the server, and wait for nothing."""
        self._requests, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
        self._waiting = threading.Lock()  # only a wait has an answer
        self._environment = dict(os.environ)
        self._caller = os.getpid()
        boot = _BOOT.format(path=sys.path, fd=theirs.fileno(), parent=self._caller)
        self.process = subprocess.Popen(
            [sys.executable, "-c", boot],
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()

    @property
    def is_usable(self) -> bool:
        """Whether it runs and belongs to this process, not to one that this is a fork of."""
        return self._caller == os.getpid() and self.process.poll() is None

    def load(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        """Import modules in the background, for the children to come."""
        self._requests.send(pickle.dumps(_Load(tuple(modules), dict(environment))))

    def fork(self, pipe: int, output: int) -> None:
        """Start a child in the background, in the present folder.

        Args:
            pipe: Its end of its pipe, through which it sends its process id and then serves.
            output: The file of what it prints.
        """
        folder = os.open(".", os.O_PATH)
        try:
            send_fds(self._requests, [pickle.dumps(_Fork())], [pipe, output, folder])
        finally:
            os.close(folder)

    def wait(self, pid: int, timeout_s: float | None) -> int | None:
        """The exit code of a child, negative for a signal; None if it does not end in time."""
        with self._waiting:
            self._requests.send(pickle.dumps(_Wait(pid, timeout_s)))
            answer = self._requests.recv(_MAX_MESSAGE_BYTES)
        if not answer:
            raise ConnectionResetError("the server has ended")
        code: int | None = pickle.loads(answer)
        return code

    def changed_variables(self) -> dict[str, str | None]:
        """The environment variables that changed since the server started; None for one that is gone."""
        before, now = self._environment, dict(os.environ)
        gone: dict[str, str | None] = dict.fromkeys(before.keys() - now.keys())
        return gone | dict(now.items() - before.items())


class ForkedProcess:
    """A child of the server, with what `subprocess.Popen` offers of one."""

    returncode = -signal.SIGKILL  # as long as nothing else is known: it ends with the server

    def __init__(self, server: ForkServer, pipe: AnyConnection) -> None:
        self._server, self._pipe = server, pipe
        self._has_ended = self._has_announced = False
        self._pid: int | None = None
        self._announcing = threading.Lock()  # one thread may kill a child that another one waits for

    @property
    def pid(self) -> int | None:
        """Its process id, once it has started; None if it could not be started."""
        with self._announcing:
            if not self._has_announced:
                with suppress(EOFError, OSError):
                    self._pid = self._pipe.recv()
                self._has_announced = True
        return self._pid

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code; raises subprocess.TimeoutExpired."""
        if not self._has_ended and self.pid is not None:
            with suppress(ConnectionError):
                code = self._server.wait(self.pid, timeout)
                if code is None:
                    raise subprocess.TimeoutExpired("child", timeout or 0.0)
                self.returncode = code
        self._has_ended = True
        return self.returncode


_running: ForkServer | None = None
_starting = threading.Lock()


def fork_server() -> ForkServer:
    """The server of this process; started at its first use, and again after its end."""
    global _running
    with _starting:
        if _running is None or not _running.is_usable:
            _running = ForkServer()
        return _running


def preload(modules: Sequence[str], environment: Mapping[str, str] = MappingProxyType({})) -> None:
    """Import modules in the background, once, so that the children that need them start faster.

    Args:
        modules: Their names; those that cannot be imported are left out. None may open a device.
        environment: Variables that hold while they are imported.
    """
    with suppress(ConnectionError):  # the next child starts another server
        fork_server().load(modules, environment)


def fork(pipe: int, output: int) -> ForkServer:
    """Start a child with `ForkServer.fork`; if the server has ended, with another one."""
    server = fork_server()
    try:
        server.fork(pipe, output)
    except ConnectionError:
        server.process.wait()
        server = fork_server()
        server.fork(pipe, output)
    return server


def run(descriptor: int, parent: int, serve: Callable[[AnyConnection], None]) -> None:
    """Run in the server, and in each child, where `serve` is called with its pipe."""
    requests = socket(fileno=descriptor)
    server = os.getpid()
    while True:
        while not select.select([requests], [], [], _PARENT_CHECK_S)[0]:
            if os.getppid() != parent:
                return
        data, descriptors, _, _ = recv_fds(requests, _MAX_MESSAGE_BYTES, 3)
        if not data:
            return
        request = pickle.loads(data)
        if isinstance(request, _Load):
            _import(request)
        elif isinstance(request, _Wait):
            requests.send(pickle.dumps(_exit_code(request)))
        else:
            if _is_child_after_fork():
                requests.close()
                pipe, output, folder = descriptors
                _become_child(server, output, folder)
                serve(_announced(pipe))
                return
            for opened in descriptors:
                os.close(opened)


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


def _import(load: _Load) -> None:
    before = {name: os.environ.get(name) for name in load.environment}
    set_variables(load.environment)
    for module in load.modules:
        with suppress(Exception):  # the child imports it again, and reports what is wrong
            importlib.import_module(module)
    set_variables(before)


def _is_child_after_fork() -> bool:
    """Fork; the child leads its process group before the server goes on."""
    gc.freeze()  # else the child's garbage collector would touch, and so copy, the server's memory
    with warnings.catch_warnings():
        # about threads: numpy's linear algebra stops its own for a fork and starts them again when needed
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            pid = os.fork()
        except OSError:  # out of memory, say; the caller sees a pipe that is closed
            return False
    if pid:
        with suppress(OSError):  # it has ended
            os.setpgid(pid, pid)
    return not pid


def _become_child(server: int, output: int, folder: int) -> None:
    os.setpgid(0, 0)
    die_with_parent(server)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.fchdir(folder)
    os.close(output)
    os.close(folder)


def _announced(descriptor: int) -> AnyConnection:
    """The child's pipe, through which it has sent its process id."""
    pipe: AnyConnection = Connection(descriptor)
    pipe.send(os.getpid())
    return pipe


def _exit_code(wait: _Wait) -> int | None:
    if wait.timeout_s is None:
        return os.waitstatus_to_exitcode(os.waitpid(wait.pid, 0)[1])
    deadline_s = time.monotonic() + wait.timeout_s
    while True:
        pid, status = os.waitpid(wait.pid, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline_s:
            return None
        time.sleep(_WAIT_STEP_S)
