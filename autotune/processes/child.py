"""A child process that holds one state and answers one call at a time, and that can always be killed.

The child leads its own process group, dies with its parent (Linux), and is replaced, never repaired.
Functions are sent by import path, values by pickle.

A process is started by command line, not by fork or by importing the caller's main module, so a script that
uses autotune needs no `__main__` guard. Processes can be started before they are needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from autotune.errors import ChildDied, ChildFailed, ChildRaised, ChildTimeout

_T = TypeVar("_T")
_PR_SET_PDEATHSIG = 1
_STDERR_TAIL_BYTES = 2000
_MAX_BYTES = 2**28  # of an answer; a stray write to the pipe could announce any length
# Sent from outside: by the system when memory is short, by a batch system at its limit, by a user.
_SIGNALS_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT}


_BOOT = """
import sys
sys.path[:] = {path!r}
from importlib import import_module
from autotune.processes.child import serve
for name in {imports!r}:
    import_module(name)
serve({fd}, {parent})
"""


@dataclass(frozen=True)
class _Raised:
    kind: str
    message: str
    trace: str


@dataclass(frozen=True)
class _Process:
    """A running process, the pipe to it, and the file of its output."""

    popen: subprocess.Popen[bytes]
    pipe: Connection[Any, Any]
    output: BinaryIO


def _start(imports: Sequence[str] = (), wrapper: Sequence[str] = ()) -> _Process:
    """Start a process that imports these modules and waits; `wrapper` is a command line that runs it."""
    output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
    ours, theirs = Pipe()
    parent = 0 if wrapper else os.getpid()
    boot = _BOOT.format(path=sys.path, imports=tuple(imports), fd=theirs.fileno(), parent=parent)
    popen = subprocess.Popen(
        [*wrapper, sys.executable, "-c", boot],
        pass_fds=[theirs.fileno()],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )
    theirs.close()
    return _Process(popen, ours, output)


_spares: dict[tuple[str, str], list[_Process]] = {}


def keep_ready(kind: str, count: int, imports: Sequence[str]) -> None:
    """Start processes ahead of their use by a `Child` of this kind; they import these modules and wait."""
    _spares.setdefault((kind, str(Path.cwd())), []).extend(_start(imports) for _ in range(count))


def _take(kind: str) -> _Process:
    """Take a process that was kept ready for this kind of work in this folder, else start one."""
    waiting = _spares.get((kind, str(Path.cwd())))
    return waiting.pop() if waiting else _start()


def discard_spares() -> None:
    """Kill the processes that were kept ready and not taken."""
    for waiting in _spares.values():
        for process in waiting:
            process.popen.kill()
            process.popen.wait()
            process.pipe.close()
            process.output.close()
    _spares.clear()


class Child:
    """One child process; it first runs `factory(*arguments)`, which returns the state for all calls."""

    def __init__(
        self,
        factory: Callable[..., Any],
        *arguments: Any,
        environment: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
        kind: str = "",
    ) -> None:
        """Start the process, or take one that `keep_ready` started for this `kind` of work.

        Args:
            factory: Makes the state, in the child.
            arguments: Its arguments.
            environment: Environment variables to set in the child.
            wrapper: A command line that runs the child, such as a debugger's.
            kind: The kind of work, as given to `keep_ready`.
        """
        self._timeout_s: float | None = None
        self._deadline_s = math.inf
        process = _start(wrapper=wrapper) if wrapper else _take(kind)
        self._process, self._pipe, self._errors = process.popen, process.pipe, process.output
        with contextlib.suppress(ConnectionError):  # the first call reports a dead process
            self._pipe.send((dict(environment or {}), factory, arguments))

    @property
    def pid(self) -> int:
        """The id of the process and of its group."""
        return self._process.pid

    def call(
        self, function: Callable[..., Any], *arguments: Any, timeout_s: float | None = None, **options: Any
    ) -> Any:
        """Run `function(state, *arguments, **options)` in the child and return what it returns.

        Raises ChildRaised when it raises, ChildTimeout after `timeout_s` seconds and ChildDied when the
        process ends; after the last two the child is gone.
        """
        self.ask(function, *arguments, timeout_s=timeout_s, **options)
        return self.answer()

    def ask(
        self, function: Callable[..., Any], *arguments: Any, timeout_s: float | None = None, **options: Any
    ) -> None:
        """Begin a call and return at once; `answer` waits for its result. Only one call runs at a time."""
        self._timeout_s = timeout_s
        self._deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        with contextlib.suppress(ConnectionError):  # `answer` reports a dead process
            self._pipe.send((function, arguments, options))

    def answer(self) -> Any:
        """Wait for the call that was begun; raises as `call` does."""
        try:
            left_s = None if self._timeout_s is None else max(0.0, self._deadline_s - time.monotonic())
            if not self._pipe.poll(left_s):
                self.kill()
                raise ChildTimeout(f"no answer within {self._timeout_s:g} s", by_machine=is_machine_busy())
            data = self._pipe.recv_bytes(_MAX_BYTES)
        except (EOFError, OSError) as error:
            if "bad message length" in str(error):
                self.kill()
                raise ChildDied("the process sent a damaged answer") from None
            raise self._death() from None
        try:
            answer = pickle.loads(data)
        except Exception:  # noqa: BLE001 - a child whose memory is damaged sends anything
            self.kill()
            raise ChildDied("the process sent a damaged answer") from None
        if isinstance(answer, _Raised):
            raise ChildRaised(answer.kind, answer.message, answer.trace)
        return answer

    def finish(self, timeout_s: float) -> tuple[int, str]:
        """Let the child end by itself; return its exit code, and what it and its wrapper printed.

        Also works after it has died. Raises ChildTimeout when it does not end in time.
        """
        self._pipe.close()
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            raise ChildTimeout(f"did not end within {timeout_s:g} s", by_machine=is_machine_busy()) from None
        self._errors.seek(0)
        return code, self._errors.read().decode(errors="replace")

    def kill(self) -> None:
        """Kill the process group and wait for the child; does nothing if it is gone already."""
        if self._pipe.closed:  # its id may belong to another process by now
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._pipe.close()

    def _death(self) -> ChildDied:
        """The error for a process that ended, with the last line that it printed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)  # it may be about to end by itself and to print why
        self.kill()
        code = self._process.returncode
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        end = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, end - _STDERR_TAIL_BYTES))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        return ChildDied(f"the process ended ({how}){last}", by_machine=was_killed(code))


def retry_once(attempt: Callable[[], _T]) -> _T:
    """Call `attempt`; call it once more if the machine may have made it fail, except after a timeout."""
    try:
        return attempt()
    except ChildFailed as error:
        if isinstance(error, ChildTimeout) or not error.by_machine:
            raise
    return attempt()


def was_killed(code: int) -> bool:
    """Whether an exit code, also one passed on by a wrapper, means a signal from outside."""
    return (-code if code < 0 else code - 128) in _SIGNALS_FROM_OUTSIDE


def is_machine_busy() -> bool:
    """Whether more processes are ready to run than the machine has cores."""
    return os.getloadavg()[0] > (os.cpu_count() or 1)


def serve(descriptor: int, parent: int) -> None:
    """Run in the child: build the state, then answer calls until the pipe closes."""
    _die_with_parent(parent)
    pipe: Connection[Any, Any] = Connection(descriptor)
    try:
        environment, factory, arguments = pipe.recv()
        os.environ.update(environment)
        state, broken = _attempt(factory, *arguments)
        while True:
            function, arguments, options = pipe.recv()
            answer, raised = (None, broken) if broken else _attempt(function, state, *arguments, **options)
            pipe.send(raised or answer)
    except EOFError:
        return


def _attempt(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, _Raised | None]:
    try:
        return function(*arguments, **options), None
    except Exception as error:  # noqa: BLE001 - the job loop: whatever a job raises is its answer
        return None, _Raised(type(error).__name__, str(error), traceback.format_exc())


def _die_with_parent(parent: int) -> None:
    """Ask the system to kill this process when its parent dies, even by kill -9."""
    if not parent:  # its parent is a wrapper, in the same process group
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
