"""A child process that holds one state and answers one call at a time, and that can always be killed.

The child leads its own process group, dies with its parent, and is replaced, never repaired. Functions are
sent by import path, values by pickle.

A child is a fork of a fork server, not of its caller, and does not import the caller's main module. So a
script that uses autotune needs no `__main__` guard.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Collection, Sequence
from itertools import count
from multiprocessing.connection import Pipe
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

from autotune.core import timeline
from autotune.core.text import shortened
from autotune.errors import Blame, ChildDied, ChildFailed, ChildRaised, ChildTimeout
from autotune.processes.fork_server import AnyConnection, ForkedProcess, fork, set_variables
from autotune.processes.machine_load import cores

_T = TypeVar("_T")
_STDERR_TAIL_BYTES = 2000
_WARNING = re.compile(r"^.*:\d+: \w*Warning: .*(?:\n  .*)?", re.MULTILINE)  # of Python, with its line of code
_PLEA = "PLEASE submit a bug report"  # of LLVM in a driver, whatever crashed
MAX_END_S = 20.0  # of a killed process; one that hangs in a driver ends when the driver lets it
_MAX_BYTES = 2**28  # of an answer; a stray write to the pipe could announce any length
# Sent from outside: by the system when memory is short, by a batch system at its limit, by a user.
_SIGNALS_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT}

_Raised: TypeAlias = tuple[str, str, str]  # what ChildRaised takes


class Child:
    """One child process; it first runs `factory(*arguments)`, which returns the state for all calls."""

    def __init__(self, factory: Callable[..., Any], *arguments: Any, wrapper: Sequence[str] = ()) -> None:
        """Start the process, in the background.

        `wrapper` is a command line that runs the child, such as a debugger's.
        """
        self._timeout_s: float | None = None
        self._deadline_s = math.inf
        self._calls, self._called = 0, ""
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - is read after the process has ended
        weakref.finalize(self, self._output.close)
        self._pipe, theirs = Pipe()
        self._killing = threading.Lock()  # one thread may kill a child that another one uses
        ended, its_end = Pipe()
        used = fork(wrapper, theirs.fileno(), self._output.fileno(), its_end.fileno())
        its_end.close()
        self._process = ForkedProcess(ended)
        theirs.close()
        with contextlib.suppress(ConnectionError):  # the first call reports a dead process
            self._pipe.send((sys.path, used.changed_variables(), timeline.is_recording()))
            self._pipe.send((factory, arguments))

    @property
    def pid(self) -> int | None:
        """The id of the process and of its group, once it has started; None if it could not be started."""
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
        """Begin a call and return at once; `answer` waits for its result. Only one call runs at a time.

        The time that `answer` waits for the start of the process does not count.
        """
        self._timeout_s = timeout_s
        self._deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        self._calls, self._called = self._calls + 1, _words(function, *arguments)
        with contextlib.suppress(OSError):  # `answer` reports a process that is dead or was killed
            self._pipe.send((function, arguments, options))

    def answer(self) -> Any:
        """Wait for the call that was begun; raises as `call` does."""
        if not timeline.is_recording():
            return self._answer()
        with timeline.span(f"wait: {self._called}", call=f"{self.pid}.{self._calls}"):
            return self._answer()

    def _answer(self) -> Any:
        try:
            began_s = time.monotonic()
            if self.pid is None:
                raise EOFError
            self._deadline_s += time.monotonic() - began_s  # the start of the process does not count
            left_s = None if self._timeout_s is None else max(0.0, self._deadline_s - time.monotonic())
            if not self._pipe.poll(left_s):
                self.kill()
                raise ChildTimeout(f"no answer within {self._timeout_s:g} s", _blame_for_delay())
            data = self._pipe.recv_bytes(_MAX_BYTES)
        except (EOFError, OSError) as error:
            raise (self._damage() if "bad message length" in str(error) else self._death()) from None
        try:
            answer, raised, spans = pickle.loads(data)
        except Exception:  # noqa: BLE001 - a child whose memory is damaged sends anything
            raise self._damage() from None
        timeline.receive(spans)
        if raised:
            raise ChildRaised(*raised)
        return answer

    def finish(self, timeout_s: float) -> tuple[int, str]:
        """Let the child end by itself; return its exit code, and what it and its wrapper printed.

        Also works after it has died. Raises ChildTimeout when it does not end in time.
        """
        self._pipe.close()
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._kill_group()
            raise ChildTimeout(f"did not end within {timeout_s:g} s", _blame_for_delay()) from None
        return code, self.printed()

    def printed(self, most_bytes: float = math.inf) -> str:
        """What the child and its wrapper have printed until now, but no more than the last bytes of it."""
        file = self._output.fileno()  # the child writes where it would be after a seek
        size = os.fstat(file).st_size
        count = int(min(size, most_bytes))
        return os.pread(file, count, size - count).decode(errors="replace")

    def kill(self, *, waits: bool = True) -> None:
        """Kill the process group, and wait for the child up to MAX_END_S; does nothing if it is gone already.

        The end of a process that used a GPU takes a tenth of a second. Without `waits` it goes on in the
        background as soon as the process has started; another call waits for it.
        """
        with self._killing:
            if not self._pipe.closed:  # else its id may belong to another process by now
                self._kill_group(waits=waits)
                if not waits:
                    return
                self._pipe.close()
                self._process.release()

    def _kill_group(self, *, waits: bool = True) -> None:
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        if waits:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(MAX_END_S)

    def _damage(self) -> ChildDied:
        """The error for a process that sent what is no answer; it is killed."""
        self.kill()
        return ChildDied("the process sent a damaged answer")

    def _death(self) -> ChildDied:
        """The error for a process that ended, with the last line that it printed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)  # it may be about to end by itself and to print why
        self.kill()
        code = self._process.returncode
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        text = _WARNING.sub("", self.printed(_STDERR_TAIL_BYTES)).strip()
        lines = [line for line in text.splitlines() if not line.startswith(_PLEA)]
        last = f": {lines[-1]}" if lines else ""
        blame = Blame.MACHINE if was_killed(code) else Blame.PROCESS
        return ChildDied(f"the process ended ({how}){last}", blame)


def kill_all(children: Collection[Child]) -> None:
    """Kill children and wait for all; they end at the same time."""
    for child in children:
        child.kill(waits=False)
    for child in children:
        child.kill()


def retry_once(attempt: Callable[[], _T]) -> _T:
    """Call `attempt`; call it once more if the machine may have made it fail, except after a timeout."""
    try:
        return attempt()
    except ChildFailed as error:
        if isinstance(error, ChildTimeout) or error.blame is not Blame.MACHINE:
            raise
    return attempt()


def was_killed(code: int) -> bool:
    """True if an exit code, also one passed on by a wrapper, means a signal from outside."""
    return (-code if code < 0 else code - 128) in _SIGNALS_FROM_OUTSIDE


def _blame_for_delay() -> Blame:
    """The machine, if more processes are ready to run than it has cores."""
    return Blame.MACHINE if os.getloadavg()[0] > cores() else Blame.CONFIGURATION


def serve(pipe: AnyConnection) -> None:
    """Run in the child: build the state, then answer calls until the pipe closes."""
    try:
        sys.path[:], variables, is_recorded = pipe.recv()
        set_variables(variables)
        factory, arguments = pipe.recv()
        if is_recorded:
            timeline.begin(factory.__module__.rpartition(".")[2].replace("_", " "))
        else:
            timeline.end()
        with timeline.span(f"start: {_words(factory)}"):
            state, broken = _attempt(factory, *arguments)
        for number in count(1):
            function, arguments, options = pipe.recv()
            with timeline.span(_words(function, *arguments), call=f"{os.getpid()}.{number}"):
                answer, raised = (
                    (None, broken) if broken else _attempt(function, state, *arguments, **options)
                )
            pipe.send((answer, raised, timeline.taken()))
    except EOFError:
        return


def _words(function: Callable[..., Any], *arguments: Any) -> str:
    """The name of a function in words, for the timeline: of the one that it is to call, if there is one."""
    called = arguments[0] if arguments and isinstance(arguments[0], FunctionType) else function
    return getattr(called, "__name__", type(called).__name__).strip("_").replace("_", " ")


def _attempt(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, _Raised | None]:
    try:
        return function(*arguments, **options), None
    except Exception as error:  # noqa: BLE001 - the job loop: whatever a job raises is its answer
        trace = shortened(traceback.format_exc())
        return None, (type(error).__name__, shortened(str(error)), trace)
