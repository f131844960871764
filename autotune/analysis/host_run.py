"""Runs configurations of a space on the CPU, without a GPU: results are compared, not timed.

Kernels in C run as threads under g++, kernels in Triton in its interpreter.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from autotune.checks.host_sanitizer import (
    FURTHER_LIMITS,
    TIMEOUT_S,
    UnparsedEnd,
    can_run_on_cpu,
    find_host_sanitizer,
    judged,
    workloads_for_cpu,
)
from autotune.core.launch_plan import TRITON
from autotune.core.outcomes import NO_TIME, PASSED, Outcome, Unchecked
from autotune.core.records import Config, DeviceInfo
from autotune.core.stages import OnStage, Stage, unobserved
from autotune.core.trials import Failure, Status
from autotune.devices import INTERPRETER, Address
from autotune.devices.base import Program
from autotune.devices.host_memory import HostBuffers
from autotune.devices.interpreter import InterpreterCompiler, list_devices
from autotune.errors import (
    BrokenReference,
    ChildFailed,
    ChildRaised,
    ChildTimeout,
    ExpressionError,
    InputError,
    SetupError,
)
from autotune.evaluation.buffers import SharedBuffers, WorkloadBuffers
from autotune.evaluation.device_process import DeviceSetting, verify_once
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.verify import compare_memory
from autotune.evaluation.worker import Worker
from autotune.problem.inputs import WorkloadData, prepare
from autotune.problem.stored_inputs import StoredInputs
from autotune.problem.workload import Workload
from autotune.processes.child import Child
from autotune.processes.deadline import Deadline
from autotune.processes.scratch_folder import scratch_folder
from autotune.space import ValidSpace, require_seen
from autotune.tuning.further_sizes import FurtherSizes
from autotune.tuning.task import Target, count_space, verify_all_command, warn_of_bfloat16

_C_DIALECTS = ("cuda", "opencl", "portable")
_RIGHT = frozenset((Status.OK,))


@dataclass(frozen=True)
class HostRun:
    """One configuration: what was found, and at how many sizes it ran to its end with the right results.

    `sizes`, `larger` and `invalid` are sizes of the space; `tiles` and `unrun_tiles` are further ones, which
    the configuration's own tiles make interesting.
    """

    name: str  # "default", a landmark's name, or "as given"
    config: Config
    expected: frozenset[Status]
    outcome: Outcome
    sizes: int = 0  # at which it is right
    larger: int = 0  # at which it would take a CPU too long
    invalid: int = 0  # at which it is not valid
    tiles: int = 0  # at which it is right
    unrun_tiles: int = 0  # that the reference does not take, or for which the time was not enough
    doubts: tuple[str, ...] = ()  # what is wrong of the default as well, at sizes unlike the space's

    @property
    def status(self) -> Status | None:
        """How it ended; None if it was not run."""
        if self.outcome is PASSED:
            return Status.OK
        return self.outcome.status if isinstance(self.outcome, Failure) else None

    @property
    def is_as_expected(self) -> bool:
        """True if it ended as the space says."""
        return self.status in self.expected


@dataclass(frozen=True)
class HostRuns:
    """What configurations of a space do on the CPU; `uncompared` outputs have no expected result."""

    kernel: str
    tool: str  # what runs them
    checks: str  # what it finds, in words
    runs: tuple[HostRun, ...]
    uncompared: tuple[str, ...]
    valid: int  # configurations of the space, without those that are expected to fail
    for_all: str = ""  # the command that verifies all of them; empty if there is none without a GPU


def run_on_host(
    target: Target,
    timeout_s: float,
    config: Config | None = None,
    on_stage: OnStage = unobserved,
    *,
    at_tiles: bool = True,
) -> HostRuns:
    """Run the default and the landmarks, or one configuration, at the sizes to verify.

    What is right there runs `at_tiles` as well: at sizes that a configuration's own tiles make interesting.
    Each output is compared as a search compares it. Nothing is timed or kept.

    Raises:
        InputError: The space is wrong, or neither in C nor in Triton.
        MissingExtra: Triton is not installed.
        SetupError: There is no g++, or the reference is broken.
    """
    space, source = count_space(target)
    spec = space.spec
    if spec.dialect not in (*_C_DIALECTS, TRITON):
        raise InputError(
            f"{spec.path}: --run takes kernels in C and in Triton; this one is in dialect {spec.dialect!r}"
        )
    require_seen(space, source.text)
    deadline = Deadline(time.perf_counter() + timeout_s)
    make_way = _Interpreted if spec.dialect == TRITON else _Threads
    way: _Way = make_way(space, deadline)
    with ExitStack() as opened:
        folder = Path(opened.enter_context(scratch_folder()))
        stored = opened.enter_context(closing(StoredInputs(spec, folder)))
        maker = InstanceMaker(space, source, spec.dialect, {}, stored)
        threads = opened.enter_context(ThreadPoolExecutor(len(os.sched_getaffinity(0))))
        opened.callback(way.close)
        opened.enter_context(deadline)
        chosen = list(_named(space)) if config is None else [HostRun("as given", config, _RIGHT, NO_TIME)]
        further = FurtherSizes(maker) if at_tiles else None
        begun = [threads.submit(_run, planned, maker, way, further) for planned in chosen]
        stage = Stage("running on the CPU", total=len(begun))
        on_stage(stage)
        for done, future in enumerate(as_completed(begun), 1):
            future.result()  # a broken reference ends all
            on_stage(replace(stage, done=done))
        found = [future.result() for future in begun]
        runs = tuple(replace(run, outcome=judged(run.outcome, found[0].outcome)) for run in found)
    outputs = [item.name for item in spec.arguments if item.role in ("out", "inout")]
    compared = outputs if way.compared is None else way.compared
    uncompared = tuple(name for name in outputs if name not in compared)
    for_all = verify_all_command(spec.path, len(space)) if spec.dialect == TRITON else ""
    return HostRuns(spec.kernel, way.tool, way.checks, runs, uncompared, len(space), for_all)


def _named(space: ValidSpace) -> Iterator[HostRun]:
    """The default, and the landmarks that differ from it, which need not be valid on every device.

    A space without landmarks gives its first and last configuration: a number in the place of a macro is
    right where it is the macro's value.
    """
    default = space.spec.default
    yield HostRun("default", default, _RIGHT, NO_TIME)
    for landmark in space.spec.landmarks:
        if landmark.config != default:
            expected = frozenset((landmark.expect, Status.INVALID))
            yield HostRun(landmark.name, landmark.config, expected, NO_TIME)
    if not space.spec.landmarks and len(space):
        for name, row in (("first", 0), ("last", len(space) - 1)):
            if (config := space.config(row)) != default:
                yield HostRun(name, config, _RIGHT, NO_TIME)


def _run(planned: HostRun, maker: InstanceMaker, way: _Way, further: FurtherSizes | None) -> HostRun:
    """A run that was planned, with its outcome."""
    space, config = maker.space, planned.config
    if reasons := space.why_invalid(config):
        why = f"not valid on {space.device.name}: {'; '.join(reasons)}"
        return replace(planned, outcome=Failure(Status.INVALID, why))
    try:
        instance = maker.make(config)
    except ExpressionError as error:
        return replace(planned, outcome=Failure(Status.LAUNCH_ERROR, f"no launch: {error}"))
    right: list[Workload] = []
    workloads = instance.verify_workloads or (instance.workload,)
    outcome = way.check(instance, workloads, right.append)
    done = replace(
        planned,
        outcome=outcome,
        sizes=len(right),
        larger=sum(not can_run_on_cpu(workload) for workload in workloads),
        invalid=max(0, len(space.spec.verify_sizes) - len(workloads)),
    )
    if outcome is not PASSED or further is None or not instance.verify_workloads:
        return done
    return _run_at_tiles(done, instance, maker, way, further)


def _run_at_tiles(
    done: HostRun, instance: KernelInstance, maker: InstanceMaker, way: _Way, further: FurtherSizes
) -> HostRun:
    """A run that was right at the sizes of the space, with what was found at others, as searches count it.

    A finding counts at sizes that divide as the space's do, and elsewhere unless the default, which is right
    at the sizes of the space, is wrong there as well.
    """
    given = [workload.problem.sizes for workload in (*instance.verify_workloads, instance.workload)]
    looping = further.small(instance).further
    own = {repr(near.problem.sizes): near for near in (*further.of_tiles(instance), *looping)}
    workloads = [near for near in own.values() if near.problem.sizes not in given]
    right: list[Workload] = []

    def run(chosen: Sequence[Workload]) -> Outcome:
        try:
            return way.check(instance, chosen, right.append)
        except BrokenReference:  # it does not take these sizes
            return Unchecked(str(chosen[0].problem.sizes))

    def counts(workload: Workload) -> bool:
        if workload in looping or further.is_declared(instance, workload):
            return True
        default = maker.make(maker.space.spec.default)
        same = further.workload_of(default.config, workload)
        if same is None:
            return False
        if not isinstance(way.check(default, [same], _ignore), (Failure, UnparsedEnd)):
            return True  # it is right, or would take too long
        return way.check(default, default.verify_workloads, _ignore) is not PASSED

    outcome = run(workloads) if workloads else PASSED
    doubts: list[str] = []
    if outcome is not PASSED and not way.is_over:  # at which of these sizes?
        right.clear()
        for workload in workloads:
            outcome = run([workload])
            if isinstance(outcome, Failure):
                if counts(workload):
                    detail = f"at sizes of its tiles: {outcome.detail}"
                    return replace(done, outcome=replace(outcome, detail=detail), tiles=len(right))
                doubts.append(outcome.detail + further.advice(instance, workload))
    unrun = len(workloads) - len(right) - len(doubts)
    return replace(done, tiles=len(right), unrun_tiles=unrun, doubts=(*doubts,))


def _ignore(workload: Workload) -> None:
    pass


class _Way(ABC):
    """A way to run kernels on the CPU, which several threads may use at once."""

    tool: str
    checks: str

    def __init__(self, deadline: Deadline) -> None:
        self.compared: Collection[str] | None = None  # outputs that the reference returns; None before it ran
        self._deadline = deadline
        self._asked = Lock()  # a process answers one call at a time

    @property
    def is_over(self) -> bool:
        """True if the time is over."""
        return self._deadline.is_over

    @abstractmethod
    def check(
        self, instance: KernelInstance, workloads: Sequence[Workload], is_right: Callable[[Workload], None]
    ) -> Outcome:
        """The first finding at those sizes that a CPU can run; each that passes `is_right`.

        Raises SetupError for a broken reference.
        """

    @abstractmethod
    def close(self) -> None:
        """End its processes."""


class _Interpreted(_Way):
    """Triton: its interpreter on the device of that name, one configuration at a time."""

    checks = "results, reads and writes outside of arrays"

    def __init__(self, space: ValidSpace, deadline: Deadline) -> None:
        super().__init__(deadline)
        (device,) = list_devices()
        self.tool = f"the interpreter of {device.runtime}"
        self._worker = Worker(DeviceSetting(Address(INTERPRETER, 0), space.spec.reference))
        warn_of_bfloat16(space.spec, space.problem.dtype)

    def check(
        self, instance: KernelInstance, workloads: Sequence[Workload], is_right: Callable[[Workload], None]
    ) -> Outcome:
        chosen = tuple(filter(can_run_on_cpu, workloads))
        if not chosen:
            return Unchecked(f"all sizes need more than {FURTHER_LIMITS}")
        binary = InterpreterCompiler().compile(instance.source, instance.options, instance.names)
        with self._asked:
            self._worker.set_workloads(chosen)  # what their reference raises ends all
            for workload in chosen:
                if self._deadline.is_over:
                    return NO_TIME
                limit_s = self._deadline.left_s(TIMEOUT_S)
                failure: Failure | None = self._worker.run(
                    verify_once, binary, workload, timeout_s=limit_s, workloads=chosen
                )
                if failure:
                    is_late = failure.status is Status.TIMEOUT and self._deadline.is_over
                    return NO_TIME if is_late else failure
                self.compared = self._worker.compared
                is_right(workload)
        return PASSED

    def close(self) -> None:
        self._worker.end()


class _Threads(_Way):
    """C: threads under g++. Expected results come from a process of its own: references are users' code."""

    checks = "results, races and accesses outside of arrays"

    def __init__(self, space: ValidSpace, deadline: Deadline) -> None:
        super().__init__(deadline)
        tool = find_host_sanitizer()
        if tool is None:
            raise SetupError("g++ is not installed; to run kernels on the CPU, install it (in Debian, g++)")
        self.tool = tool.version
        self._sanitizer, self._reference = tool, space.spec.reference
        self._child = Child(_Reference, self._reference, space.device)

    def check(
        self, instance: KernelInstance, workloads: Sequence[Workload], is_right: Callable[[Workload], None]
    ) -> Outcome:
        def compare(workload: Workload, files: Mapping[str, Path]) -> Outcome:
            outcome = self._compare(workload, files)
            if outcome is PASSED:
                is_right(workload)
            return outcome

        small = workloads_for_cpu(workloads)
        larger = [workload for workload in workloads if workload not in small]
        return self._sanitizer.check(instance.source, workloads, self._deadline, larger, compare)

    def _compare(self, workload: Workload, files: Mapping[str, Path]) -> Outcome:
        """Compare the arrays in files with what is expected."""
        with self._asked:
            if self._deadline.is_over:
                return NO_TIME
            try:
                failure, self.compared = self._child.call(
                    _Reference.compare, workload, files, timeout_s=self._deadline.left_s()
                )
            except ChildTimeout:
                return NO_TIME
            except ChildFailed as error:
                if isinstance(error, ChildRaised) and error.kind == BrokenReference.__name__:
                    raise BrokenReference(error.message) from None
                raise SetupError(f"{self._reference}: {error}") from None
        return failure or PASSED

    def close(self) -> None:
        self._child.kill()


class _Reference:
    """The state of that process: data that configurations share."""

    def __init__(self, path: Path, device: DeviceInfo) -> None:
        self._path = path
        self._data: dict[str, WorkloadData] = {}
        self._memory = _Memory(device)

    def compare(self, workload: Workload, files: Mapping[str, Path]) -> tuple[Failure | None, set[str]]:
        """What differs after a run, and the names of the outputs that have an expected result."""
        data = self._data.get(workload.data_key)
        if data is None:
            data = self._data[workload.data_key] = prepare(workload, self._path)
        buffers = WorkloadBuffers(workload, SharedBuffers(self._memory, data))
        for guarded in buffers.arrays():
            if guarded.array.name in files:
                self._memory.write(guarded.from_offset(0), np.fromfile(files[guarded.array.name], np.uint8))
        return compare_memory(buffers), {*data.expected}


class _Memory(HostBuffers):
    """Arrays alone: programs have run elsewhere."""

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info

    def load(self, *_: Any) -> Program:
        raise NotImplementedError

    def run(self, *_: Any) -> float:
        raise NotImplementedError
