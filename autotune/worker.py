"""The parent's side of the one process that uses the device: run jobs, survive whatever they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from autotune.bench import Bench, hold, ready
from autotune.child import Child, ChildDied, ChildRaised, ChildTimeout
from autotune.devices import Address
from autotune.devices.base import OutOfMemory
from autotune.errors import NoMemory, SetupError
from autotune.jobs import Case
from autotune.trials import Failure, Status

SETUP_TIMEOUT_S = 600.0
DEVICE_PROCESS = "device"  # of the processes that may be kept ready

_ChildError = ChildRaised | ChildDied | ChildTimeout


class Worker:
    """One device in a child process that is replaced after a crash, a hang or an error that sticks.

    `cases` are prepared (inputs drawn, references computed) whenever a child starts, others when `prepare`
    asks for them, so that a job's time limit is spent on the job.
    """

    def __init__(
        self,
        address: Address,
        reference: Path,
        cases: tuple[Case, ...],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._address = address
        self._reference = reference
        self._cases = cases
        self._environment = environment
        self._child: Child | None = None
        self._is_ready = False
        self._runs = 0  # that this child was asked for
        self._again: Callable[[], None] = self.start  # begins the latest run once more
        self._wanted: tuple[Case, ...] = ()
        self._held: frozenset[str] = frozenset()
        self._timeout_s = 0.0
        self.compares = True  # as far as is known: the reference says what is right

    def start(self) -> None:
        """Start the child unless there is one; it opens its device while the caller goes on."""
        if self._child is None:
            self._child = Child(
                Bench,
                self._address,
                self._reference,
                self._cases,
                environment=self._environment,
                kind=DEVICE_PROCESS,
            )
            self._is_ready = False
            self._runs = 0

    def prepare(self, *cases: Case) -> Failure | None:
        """Have what these cases need at hand before the next run; a Failure if that goes wrong.

        Nothing is done where it is at hand already. Otherwise the arrays of other cases leave the device's
        memory first. Raises SetupError or NoMemory when it goes wrong with the cases of every child.
        """
        self._wanted = cases
        return self._hold_wanted()

    def run(self, function: Callable[..., Any], *arguments: Any, timeout_s: float, **options: Any) -> Any:
        """Run `function(bench, *arguments, **options)` in the child; a Failure if that goes wrong.

        After a doubtful failure the child is replaced; had it run something else before, the run is repeated
        in the fresh one. Raises SetupError when the device or the reference is broken, whatever the
        configuration.
        """
        self.begin(function, *arguments, timeout_s=timeout_s, **options)
        return self.finish()

    def begin(self, function: Callable[..., Any], *arguments: Any, timeout_s: float, **options: Any) -> None:
        """Begin a run that `finish` ends, so that the caller can use the time in between."""
        self._timeout_s = timeout_s
        self._again = partial(self.begin, function, *arguments, timeout_s=timeout_s, **options)
        self._ready_child().ask(function, *arguments, timeout_s=timeout_s, **options)
        self._runs += 1

    def finish(self) -> Any:
        """Wait for the run that was begun: its answer, or a Failure."""
        answer = self._answer()
        while _is_doubtful(answer):
            self.close()
            if self._runs == 1:
                break
            failure = self._hold_wanted()  # by the fresh child, as by the one before
            if failure is not None:
                return failure
            self._again()
            answer = self._answer()
        return answer

    def _answer(self) -> Any:
        assert self._child is not None
        try:
            return self._child.answer()
        except ChildTimeout:
            failure = Failure(Status.TIMEOUT, f"did not end within {self._timeout_s:g} s and was killed")
        except (ChildDied, ChildRaised) as error:
            failure = Failure(Status.CRASHED, str(error), is_doubtful=True)
        self.close()
        return failure

    def close(self) -> None:
        """Kill the child; the next run starts a fresh one."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _ready_child(self) -> Child:
        self.start()
        assert self._child is not None
        if not self._is_ready:
            try:
                self.compares = self._child.call(ready, timeout_s=SETUP_TIMEOUT_S)
            except (ChildRaised, ChildDied, ChildTimeout) as error:
                self.close()
                raise self._broken(error) from None
            self._is_ready, self._held = True, frozenset()
        return self._child

    def _hold_wanted(self) -> Failure | None:
        child, wanted = self._ready_child(), _keys(self._wanted)
        if wanted <= self._held:
            return None
        are_first = wanted <= _keys(self._cases)
        cases = self._cases if are_first else self._wanted
        self._held = frozenset()
        try:
            child.call(hold, cases, timeout_s=SETUP_TIMEOUT_S)
        except (ChildRaised, ChildDied, ChildTimeout) as error:
            self.close()
            if are_first:
                raise self._broken(error) from None
            return _unprepared(error)
        self._held = _keys(cases)
        return None

    def _broken(self, error: _ChildError) -> SetupError | NoMemory:
        """What is wrong whatever the configuration."""
        if _is_full(error):
            return NoMemory(str(error))
        return SetupError(f"{self._reference} on {self._address}: cannot prepare the problem: {error}")


def _keys(cases: tuple[Case, ...]) -> frozenset[str]:
    return frozenset(case.data_key for case in cases)


def _is_full(error: _ChildError) -> bool:
    return isinstance(error, ChildRaised) and error.kind == OutOfMemory.__name__


def _unprepared(error: _ChildError) -> Failure:
    """What is wrong with one configuration, whose arrays are its own."""
    if isinstance(error, ChildTimeout):
        return Failure(Status.TIMEOUT, f"preparing its problem: {error}")
    return Failure(Status.LAUNCH_ERROR if _is_full(error) else Status.CRASHED, str(error))


def _is_doubtful(answer: Any) -> bool:
    """Whether a run's answer is a doubtful failure, or has one."""
    failure = answer if isinstance(answer, Failure) else getattr(answer, "failure", None)
    return failure is not None and failure.is_doubtful
