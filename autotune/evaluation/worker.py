"""The parent's side of the device process: run functions in it, and replace it when one breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeGuard, TypeVar

from autotune.core.stages import OnStage, Stage, unobserved
from autotune.core.text import size_text
from autotune.core.trials import Failure, Measurement, Status
from autotune.devices import BACKENDS
from autotune.devices.clocks import restore_abandoned
from autotune.errors import (
    Blame,
    BrokenReference,
    CannotSet,
    ChildFailed,
    ChildRaised,
    ChildTimeout,
    NoMemory,
    OutOfMemory,
    SetupError,
)
from autotune.evaluation.device_process import (
    DeviceSetting,
    DeviceState,
    load,
    open_device,
    run_with_memory,
    set_up,
    verify_and_time,
)
from autotune.evaluation.work_item import WorkItem
from autotune.problem.workload import Workload
from autotune.processes.child import Child, retry_once
from autotune.processes.fork_server import preload

_T = TypeVar("_T")

SETUP_TIMEOUT_S = 600.0
_PREPARED = Stage("verifying")  # until another stage is reported


class DeviceWorker(Protocol):
    """Runs functions on one device, in this machine or in another; see `Worker`."""

    @property
    def compared(self) -> frozenset[str]:
        """The arrays that the reference returns."""

    def load(self, *workloads: Workload) -> Failure | None:
        """Load workloads into device memory."""

    def run(
        self,
        function: Callable[..., _T],
        *arguments: Any,
        timeout_s: float,
        workloads: Sequence[Workload] = (),
        **options: Any,
    ) -> _T | Failure:
        """Load workloads, run `function(state, *arguments, **options)`, return the answer or a Failure."""

    def replace_if_used(self) -> None:
        """Take a fresh process if a search has run in this one."""

    def discard_child(self) -> None:
        """End the process; the next run starts a fresh one."""


@dataclass(frozen=True)
class _DeviceCall:
    """A function to run in the device process, with the workloads to load before."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    timeout_s: float
    workloads: Sequence[Workload] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class _Process:
    """A device process, and what is known of it."""

    child: Child
    loaded: frozenset[str] | None = None  # data keys of the problems in device memory; None: not set up yet
    runs: int = 0  # each may have broken the process for later ones
    has_searched: bool = False  # True if it ran configurations that had not passed before


class Worker:
    """One device in a child process that is replaced after a crash, a hang or a lost device.

    Whenever a child starts, it prepares the setting's workloads: it draws inputs and computes references.
    `load` prepares others. So the time limit of a run covers the run alone.
    """

    def __init__(self, setting: DeviceSetting, on_stage: OnStage = unobserved) -> None:
        """Start nothing yet; `on_stage` is called when a workload is prepared."""
        self._setting, self._on_stage = setting, on_stage
        self._process: _Process | None = None  # None before the first use, and after one that broke it
        self._spare: Child | None = None  # the next one, with an open device
        self._has_ended = False
        self._compared: frozenset[str] | None = None  # None: not asked yet

    def set_workloads(self, workloads: tuple[Workload, ...]) -> None:
        """Take other workloads as the setting's; a running child prepares them when they are used."""
        self._setting = replace(self._setting, workloads=workloads)

    def start(self) -> None:
        """Start the child unless there is one; it opens its device in the background."""
        if self._process is None:
            self._begin_setup(self._next_child())

    def _new_child(self) -> Child:
        preload(("autotune.evaluation.device_samples", BACKENDS[self._setting.address.backend].module))
        return Child(DeviceState, self._setting)

    def _begin_setup(self, child: Child) -> None:
        """Take a child, which begins to prepare the setting's workloads."""
        self._process = _Process(child)
        child.ask(set_up, timeout_s=SETUP_TIMEOUT_S)
        if self._has_ended:  # checked last: another thread may have ended this worker meanwhile
            self.discard_child()
            raise SetupError(f"{self._setting.address} is no longer used by this search")

    @property
    def compared(self) -> frozenset[str]:
        """The arrays that the reference returns; raises SetupError or NoMemory when the setup fails."""
        if self._compared is None:
            self._set_up_process()
        return self._compared or frozenset()

    def load(self, *workloads: Workload) -> Failure | None:
        """Load workloads into device memory; return a Failure if that goes wrong.

        Unless they are in memory already, other workloads are freed first. If they are among the
        setting's, all of the setting's are loaded, because most configurations run on these, and a failure is
        one of the setup. If the machine may have caused a failure, the child is replaced and loads them once
        more. Raises SetupError or NoMemory when the setting's workloads fail.
        """
        are_of_setting = _keys(workloads) <= _keys(self._setting.workloads)
        try:
            retry_once(partial(self._load, workloads, all_of_setting=are_of_setting))
        except ChildFailed as error:
            if are_of_setting:
                raise self._setup_error(error) from None
            return _unprepared(error)
        return None

    def run(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        timeout_s: float,
        workloads: Sequence[Workload] = (),
        **options: Any,
    ) -> Any:
        """Load workloads, run `function(state, *arguments, **options)`, return the answer or a Failure.

        The child is replaced after a doubtful failure. If the machine, or another configuration in the child,
        may have caused it, the run is repeated. Raises SetupError when the device or the reference is broken.
        """
        call = _DeviceCall(function, arguments, timeout_s, workloads, options)
        unprepared = self._begin(call)
        return self._wait_or_repeat(call) if unprepared is None else unprepared

    def begin_item(self, item: WorkItem, timeout_s: float) -> Callable[[], Measurement | Failure]:
        """Load the workloads of an item and begin its run; the returned function waits for the outcome.

        If the run is repeated, it is without the incumbent, which may have caused the failure.
        """
        call = _DeviceCall(verify_and_time, (item,), timeout_s, (*item.verify_workloads, item.workload))
        if (unprepared := self._begin(call)) is not None:
            return lambda: unprepared
        alone = replace(call, arguments=(replace(item, is_alone=True),))
        return partial(self._wait_or_repeat, alone, runs_others=item.runs_incumbent)

    def run_item(self, item: WorkItem, timeout_s: float) -> Measurement | Failure:
        """Run an item, and wait for the outcome."""
        return self.begin_item(item, timeout_s)()

    def _begin(self, call: _DeviceCall) -> Failure | None:
        """Load the workloads of a call and begin its run; return a Failure if these cannot be loaded."""
        if call.workloads and (unprepared := self.load(*call.workloads)) is not None:
            return unprepared
        process = self._set_up_process()
        process.child.ask(
            run_with_memory, call.function, *call.arguments, timeout_s=call.timeout_s, **call.options
        )
        process.runs += 1
        process.has_searched |= call.function is verify_and_time
        return None

    def _wait_or_repeat(self, again: _DeviceCall, *, runs_others: bool = False) -> Any:
        """Wait for the answer of the run that has begun, or for a Failure.

        If the machine, or another run in the same child, may have caused the failure, the call `again` runs
        in a fresh child. `runs_others` says that the run itself runs another configuration as well.
        """
        assert self._process is not None
        has_other_runs = runs_others or self._process.runs > 1
        answer = self._wait(again.timeout_s)
        blame = _blame(answer)
        if blame is Blame.MACHINE or (blame is Blame.PROCESS and has_other_runs):
            self.discard_child()
            if (unprepared := self._begin(again)) is not None:
                return unprepared
            answer = self._wait(again.timeout_s)
            blame = _blame(answer)
        is_outside = isinstance(answer, Failure) and answer.status is Status.OUT_OF_BOUNDS
        if blame is Blame.PROCESS or is_outside:  # it may have written beyond the guard zone as well
            self.discard_child()
        return answer

    def _wait(self, timeout_s: float) -> Any:
        assert self._process is not None
        try:
            answer, self._process.loaded = self._process.child.answer()
            return answer
        except ChildTimeout as error:
            detail = f"did not end within {timeout_s:g} s and was killed"
            failure = Failure(Status.TIMEOUT, detail, error.blame)
        except ChildFailed as error:
            failure = Failure(Status.CRASHED, str(error), error.blame)
        self.discard_child()
        return failure

    def begin_spare(self) -> None:
        """Begin the child after one in which a search runs, and open its device there meanwhile.

        After a crash it may take the place of the child that is lost.
        """
        if self._spare is None and (self._process is None or self._process.has_searched):
            self._spare = self._new_child()
            self._spare.ask(open_device, timeout_s=SETUP_TIMEOUT_S)

    def replace_if_used(self) -> None:
        """Replace a child in which a search has run; a child that only ran passed configurations stays."""
        if self._process and self._process.has_searched:
            earlier = self._process.child
            earlier.kill(waits=False)
            child = self._next_child()  # it draws inputs while the earlier one frees the device
            earlier.kill()
            restore_abandoned()
            self._begin_setup(child)

    def _next_child(self) -> Child:
        """The spare child; a new one if there is none, or if it could not open the device beside another."""
        child = self._spare  # `end` can still kill it during the wait
        if child is not None:
            try:
                child.answer()
            except ChildFailed:
                child.kill()
                child = None
            self._spare = None
        return child or self._new_child()

    def end(self, *, waits: bool = True) -> None:
        """Kill the child for good: a run of another thread raises SetupError and starts no new child.

        Without `waits`, it may hold device memory until another call has waited.
        """
        self._has_ended = True
        children = (self._process.child if self._process else None, self._spare)
        for child in filter(None, children):
            child.kill(waits=waits)
        if waits:
            restore_abandoned()

    def discard_child(self) -> None:
        """Kill the child; the next run starts a fresh one."""
        if self._process is not None:
            self._process.child.kill()
            self._process = None
            restore_abandoned()

    def _set_up_process(self) -> _Process:
        try:
            return retry_once(self._await_setup)
        except ChildFailed as error:
            raise self._setup_error(error) from None

    def _await_setup(self) -> _Process:
        """The process, once its device is open and the setting's workloads are prepared."""
        self.start()
        assert self._process is not None
        process = self._process
        if process.loaded is None:
            with self._reporting(), self._ending_if_broken(process):
                self._compared = process.child.answer()
            process.loaded = frozenset()
        return process

    def _load(self, workloads: tuple[Workload, ...], *, all_of_setting: bool) -> None:
        """Load workloads, or all of the setting's, unless these are loaded."""
        process = self._set_up_process()
        if _keys(workloads) <= (process.loaded or frozenset()):
            return
        process.loaded = frozenset()
        workloads = self._setting.workloads if all_of_setting else workloads
        reporting = self._reporting() if all_of_setting else nullcontext()  # a check has a stage of its own
        with reporting, self._ending_if_broken(process):
            process.loaded = process.child.call(
                load, workloads, self._setting.workloads, timeout_s=SETUP_TIMEOUT_S
            )

    @contextmanager
    def _ending_if_broken(self, process: _Process) -> Iterator[None]:
        """Discard the child if preparing workloads fails.

        A child that was set up goes on after a reference has raised, for the device is as it was.
        """
        try:
            yield
        except ChildFailed as error:
            if process.loaded is None or not _is_of_reference(error):
                self.discard_child()
            raise

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Report that the setting's workloads are prepared, and the end if that goes well."""
        sizes = [size_text(workload.problem.sizes) for workload in self._setting.workloads]
        where = "".join(sizes) if len(sizes) < 2 else f"{len(sizes)} sizes"
        name = f"preparing inputs and reference ({self._setting.reference.name})"
        self._on_stage(Stage(name, sizes=where))
        yield
        self._on_stage(_PREPARED)

    def _setup_error(self, error: ChildFailed) -> SetupError | NoMemory:
        """The error for a setup that fails for every configuration."""
        if _is_full(error):
            return NoMemory(str(error))
        if _is_of_reference(error):
            return BrokenReference(error.message)
        if isinstance(error, ChildRaised) and error.kind == CannotSet.__name__:
            return CannotSet(f"{self._setting.address}: {error.message}")
        where = f"{self._setting.reference} on {self._setting.address}"
        if isinstance(error, ChildTimeout):
            return SetupError(
                f"{where}: device, inputs and reference were not ready within {SETUP_TIMEOUT_S:g} s; "
                "make the reference faster, or choose a smaller problem with --size"
            )
        return SetupError(f"{where}: cannot prepare the problem: {error}")


def _keys(workloads: tuple[Workload, ...]) -> frozenset[str]:
    return frozenset(workload.data_key for workload in workloads)


def _is_full(error: ChildFailed) -> bool:
    return isinstance(error, ChildRaised) and error.kind == OutOfMemory.__name__


def _is_of_reference(error: ChildFailed) -> TypeGuard[ChildRaised]:
    return isinstance(error, ChildRaised) and error.kind == BrokenReference.__name__


def _unprepared(error: ChildFailed) -> Failure:
    """The failure of a configuration whose own arrays cannot be prepared."""
    if isinstance(error, ChildTimeout):
        return Failure(Status.TIMEOUT, f"preparing the problem: {error}", error.blame)
    if _is_of_reference(error):
        return Failure(Status.WRONG_RESULT, f"the reference does not fit the arrays: {error.message}")
    status = Status.LAUNCH_ERROR if _is_full(error) else Status.CRASHED
    return Failure(status, str(error), error.blame)


def _blame(answer: Any) -> Blame:
    """The possible causes of the failure in a run's answer, if it is one."""
    return answer.blame if isinstance(answer, Failure) else Blame.CONFIGURATION
