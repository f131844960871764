"""The parent's side of the one process that uses the device: run jobs, survive whatever they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

from autotune.core.trials import Failure, Status
from autotune.devices import Address
from autotune.errors import ChildFailed, ChildRaised, ChildTimeout, NoMemory, OutOfMemory, SetupError
from autotune.evaluation.device_process import DeviceState, hold, ready
from autotune.evaluation.work_item import ProblemInstance
from autotune.processes.child import Child, persistently

SETUP_TIMEOUT_S = 600.0
SILENCE_S = 5.0  # after so long the user is told what is being waited for
DEVICE_PROCESS = "device"  # of the processes that may be kept ready

OnWait = Callable[[str], None]


class Worker:
    """One device in a child process that is replaced after a crash, a hang or an error that sticks.

    `cases` are prepared (inputs drawn, references computed) whenever a child starts, others when `prepare`
    asks for them, so that a job's time limit is spent on the job.
    """

    def __init__(
        self,
        address: Address,
        reference: Path,
        cases: tuple[ProblemInstance, ...],
        environment: Mapping[str, str] | None = None,
        on_wait: OnWait = lambda _: None,
    ) -> None:
        """`on_wait` is told, by another thread, what takes longer than a few seconds."""
        self._address = address
        self._reference = reference
        self._cases = cases
        self._environment = environment
        self._on_wait = on_wait
        self._child: Child | None = None
        self._is_ready = False
        self._runs = 0  # of configurations in this child
        self._again: Callable[[], None] = self.start  # begins the latest run once more
        self._wanted: tuple[ProblemInstance, ...] = ()
        self._held: frozenset[str] = frozenset()
        self._timeout_s = 0.0
        self._compared: frozenset[str] | None = None  # None: not known yet

    def start(self) -> None:
        """Start the child unless there is one; it opens its device while the caller goes on."""
        if self._child is None:
            self._child = Child(
                DeviceState,
                self._address,
                self._reference,
                self._cases,
                environment=self._environment,
                kind=DEVICE_PROCESS,
            )
            self._is_ready = False
            self._runs = 0

    @property
    def compared(self) -> frozenset[str]:
        """The arrays that the reference knows; raises SetupError or NoMemory where it cannot be asked."""
        if self._compared is None:
            self._ready_child()
        return self._compared or frozenset()

    def prepare(self, *cases: ProblemInstance) -> Failure | None:
        """Have what these cases need at hand before the next run; a Failure if that goes wrong.

        Nothing is done where it is at hand already. Otherwise the arrays of other cases leave the device's
        memory first. Raises SetupError or NoMemory when it goes wrong with the cases of every child. What the
        machine may have caused is done once more in a fresh child.
        """
        self._wanted = cases
        return self._hold_wanted()

    def run(self, function: Callable[..., Any], *arguments: Any, timeout_s: float, **options: Any) -> Any:
        """Run `function(state, *arguments, **options)` in the child; a Failure if that goes wrong.

        After a doubtful failure the child is replaced. The run is repeated in the fresh one where the machine
        may have caused the failure, or another configuration that the child ran. Raises SetupError when the
        device or the reference is broken, whatever the configuration.
        """
        self.begin(function, *arguments, timeout_s=timeout_s, **options)
        return self.finish()

    def begin(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        timeout_s: float,
        alone: tuple[Any, ...] | None = None,
        **options: Any,
    ) -> None:
        """Begin a run that `finish` ends, so that the caller can use the time in between.

        Args:
            function: What the child runs.
            arguments: Its positional arguments after the child's state.
            timeout_s: Time limit of the run.
            alone: The arguments to repeat the run with, where `arguments` run a second configuration, too.
            options: Its keyword arguments.
        """
        self._timeout_s = timeout_s
        again = arguments if alone is None else alone
        self._again = partial(self.begin, function, *again, timeout_s=timeout_s, **options)
        self._ready_child().ask(function, *arguments, timeout_s=timeout_s, **options)
        self._runs += 1 if alone is None else 2

    def finish(self) -> Any:
        """Wait for the run that was begun: its answer, or a Failure."""
        answer = self._answer()
        failure = _failure(answer)
        if failure is not None and (failure.by_machine or (failure.is_doubtful and self._runs > 1)):
            self.close()
            unprepared = self._hold_wanted()  # by the fresh child, as by the one before
            if unprepared is not None:
                return unprepared
            self._again()
            answer = self._answer()
            failure = _failure(answer)
        if failure is not None and failure.is_doubtful:
            self.close()
        return answer

    def _answer(self) -> Any:
        assert self._child is not None
        try:
            return self._child.answer()
        except ChildTimeout as error:
            detail = f"did not end within {self._timeout_s:g} s and was killed"
            failure = Failure(Status.TIMEOUT, detail, by_machine=error.by_machine)
        except ChildFailed as error:
            failure = Failure(Status.CRASHED, str(error), is_doubtful=True, by_machine=error.by_machine)
        self.close()
        return failure

    def close(self) -> None:
        """Kill the child; the next run starts a fresh one."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _ready_child(self) -> Child:
        try:
            return persistently(self._opened)
        except ChildFailed as error:
            raise self._broken(error) from None

    def _opened(self) -> Child:
        """The child, once its device is open and the cases of every child are prepared."""
        self.start()
        assert self._child is not None
        if not self._is_ready:
            with self._setting_up():
                self._compared = self._child.call(ready, timeout_s=SETUP_TIMEOUT_S)
            self._is_ready, self._held = True, frozenset()
        return self._child

    def _hold_wanted(self) -> Failure | None:
        wanted = _keys(self._wanted)
        are_first = wanted <= _keys(self._cases)
        cases = self._cases if are_first else self._wanted

        def attempt() -> None:
            child = self._ready_child()
            if not wanted <= self._held:
                self._held = frozenset()
                with self._setting_up():
                    child.call(hold, cases, timeout_s=SETUP_TIMEOUT_S)
                self._held = _keys(cases)

        try:
            persistently(attempt)
        except ChildFailed as error:
            if are_first:
                raise self._broken(error) from None
            return _unprepared(error)
        return None

    @contextmanager
    def _setting_up(self) -> Iterator[None]:
        """Say what is waited for if it takes long; the child is closed where it fails."""
        what = f"preparing the problem on {self._address}, computing the reference: {self._reference}"
        timer = Timer(SILENCE_S, self._on_wait, [what])
        timer.daemon = True
        timer.start()
        try:
            yield
        except ChildFailed:
            self.close()
            raise
        finally:
            timer.cancel()

    def _broken(self, error: ChildFailed) -> SetupError | NoMemory:
        """What is wrong whatever the configuration."""
        if _is_full(error):
            return NoMemory(str(error))
        where = f"{self._reference} on {self._address}"
        if isinstance(error, ChildTimeout):
            return SetupError(
                f"{where}: device, inputs and reference were not ready within {SETUP_TIMEOUT_S:g} s; "
                "make the reference faster, or choose a smaller problem with --size"
            )
        return SetupError(f"{where}: cannot prepare the problem: {error}")


def _keys(cases: tuple[ProblemInstance, ...]) -> frozenset[str]:
    return frozenset(case.data_key for case in cases)


def _is_full(error: ChildFailed) -> bool:
    return isinstance(error, ChildRaised) and error.kind == OutOfMemory.__name__


def _unprepared(error: ChildFailed) -> Failure:
    """What is wrong with one configuration, whose arrays are its own."""
    if isinstance(error, ChildTimeout):
        return Failure(Status.TIMEOUT, f"preparing its problem: {error}", by_machine=error.by_machine)
    status = Status.LAUNCH_ERROR if _is_full(error) else Status.CRASHED
    return Failure(status, str(error), by_machine=error.by_machine)


def _failure(answer: Any) -> Failure | None:
    """What a run's answer says of a failure, if it says something."""
    return answer if isinstance(answer, Failure) else getattr(answer, "failure", None)
