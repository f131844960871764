"""A child process that holds one state and answers one call at a time, and that can always be killed.

The child leads its own process group, dies with its parent (Linux), and is replaced rather than
repaired. Functions travel by their import path, values by pickle.
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
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from autotune.errors import ChildDied, ChildFailed, ChildRaised, ChildTimeout
from autotune.processes.python_process import start, take

_T = TypeVar("_T")
_PR_SET_PDEATHSIG = 1
_STDERR_TAIL_BYTES = 2000
_MAX_BYTES = 2**28  # of an answer; a kernel that writes to the pipe makes any number its length
# These come from outside: the system when memory is short, a batch system at its limit, a user.
_SIGNALS_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT}


@dataclass(frozen=True)
class _Raised:
    kind: str
    message: str
    trace: str


class Child:
    """One child process; `factory(*arguments)` runs in it first and makes the state of every call."""

    def __init__(
        self,
        factory: Callable[..., Any],
        *arguments: Any,
        environment: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
        kind: str = "",
    ) -> None:
        """Start the process, or take one that was kept ready for this `kind` of work.

        `wrapper` is a command line that it is run by, such as a debugger's.
        """
        self._timeout_s: float | None = None
        self._deadline_s = math.inf
        process = start(wrapper=wrapper) if wrapper else take(kind)
        self._process, self._pipe, self._errors = process.popen, process.pipe, process.output
        with contextlib.suppress(ConnectionError):  # one that is dead already is reported by the first call
            self._pipe.send((dict(environment or {}), factory, arguments))

    @property
    def pid(self) -> int:
        """Process id, which is also the id of the process group."""
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
        """Begin a call; `answer` ends it. Only one call can be under way."""
        self._timeout_s = timeout_s
        self._deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        with contextlib.suppress(ConnectionError):  # the answer will be that the child is dead
            self._pipe.send((function, arguments, options))

    def answer(self) -> Any:
        """Wait for the call that was begun; raises what `call` raises."""
        try:
            left_s = None if self._timeout_s is None else max(0.0, self._deadline_s - time.monotonic())
            if not self._pipe.poll(left_s):
                self.kill()
                raise ChildTimeout(f"no answer within {self._timeout_s:g} s", by_machine=is_machine_busy())
            data = self._pipe.recv_bytes(_MAX_BYTES)
        except (EOFError, OSError) as error:
            if "bad message length" in str(error):
                self.kill()
                raise ChildDied("the process sent something that is no answer") from None
            raise self._death() from None
        try:
            answer = pickle.loads(data)
        except Exception:  # noqa: BLE001 - a child whose memory is damaged sends anything
            self.kill()
            raise ChildDied("the process sent something that is no answer") from None
        if isinstance(answer, _Raised):
            raise ChildRaised(answer.kind, answer.message, answer.trace)
        return answer

    def finish(self, timeout_s: float) -> tuple[int, str]:
        """Let the child end by itself: its exit code, and what it and its wrapper printed.

        One that has died has both, too. Raises ChildTimeout when it does not end in time.
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
        """Kill the whole process group and wait for the child; harmless when it is gone already."""
        if self._pipe.closed:  # by now the number may be another process's
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._pipe.close()

    def _death(self) -> ChildDied:
        """What ended the process, with its last words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)  # it may be about to end by itself, and to say why
        self.kill()
        code = self._process.returncode
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        end = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, end - _STDERR_TAIL_BYTES))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        return ChildDied(f"the process ended ({how}){last}", by_machine=was_killed(code))


def persistently(attempt: Callable[[], _T]) -> _T:
    """What an attempt returns, or a second one where the machine made the first fail.

    One that took too long is not repeated: somebody is waiting.
    """
    try:
        return attempt()
    except ChildFailed as error:
        if isinstance(error, ChildTimeout) or not error.by_machine:
            raise
    return attempt()


def was_killed(code: int) -> bool:
    """Whether an exit code, of a process or as a wrapper passes it on, is that of a signal from outside."""
    return (-code if code < 0 else code - 128) in _SIGNALS_FROM_OUTSIDE


def is_machine_busy() -> bool:
    """Whether more processes want to run than the machine has cores."""
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
    """Ask the kernel to kill this process when its parent dies, a kill -9 included."""
    if not parent:  # run by a wrapper, which is in the same process group
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
