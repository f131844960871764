"""Runs configurations of a space as threads on the CPU, without a GPU: results are compared, not timed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import numpy as np

from autotune.checks.deadline import Deadline
from autotune.checks.host_sanitizer import (
    HostSanitizer,
    can_run_on_cpu,
    find_host_sanitizer,
    workloads_for_cpu,
)
from autotune.core.checks import NO_TIME, PASSED, Outcome
from autotune.core.launch_plan import TRITON
from autotune.core.records import Config
from autotune.core.stages import OnStage, Stage, unobserved
from autotune.core.trials import Failure, Status
from autotune.devices import INTERPRETER
from autotune.devices.fake import FakeDevice
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
from autotune.evaluation.instance import InstanceMaker
from autotune.evaluation.verify import compare_memory
from autotune.problem.inputs import WorkloadData, prepare
from autotune.problem.stored_inputs import StoredInputs
from autotune.problem.workload import Workload
from autotune.processes.child import Child
from autotune.processes.scratch_folder import scratch_folder
from autotune.space import Space, require_seen
from autotune.tuning.task import Target, count_space

_C_DIALECTS = ("cuda", "opencl", "portable")
_RIGHT = frozenset((Status.OK,))


@dataclass(frozen=True)
class HostRun:
    """One configuration: what was found, and at how many sizes it ran to its end with the right results."""

    name: str  # "default", a landmark's name, or "as given"
    config: Config
    expected: frozenset[Status]
    outcome: Outcome
    sizes: int = 0  # at which it is right
    larger: int = 0  # at which it would take a CPU too long
    invalid: int = 0  # at which it is not valid

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
    tool: str
    runs: tuple[HostRun, ...]
    uncompared: tuple[str, ...]
    valid: int  # configurations of the space, without those that are expected to fail


def run_on_host(
    target: Target, timeout_s: float, config: Config | None = None, on_stage: OnStage = unobserved
) -> HostRuns:
    """Run the default and the landmarks, or one configuration, at the sizes to verify.

    Each output is compared as a search compares it; races and accesses outside of arrays are findings.
    Nothing is timed or kept.

    Raises:
        InputError: The space is wrong, or not in C.
        SetupError: There is no g++, or the reference is broken.
    """
    space, source = count_space(target)
    spec = space.spec
    if spec.dialect not in _C_DIALECTS:
        mend = f"; run it with: autotune run {spec.path} --device {INTERPRETER}"
        raise InputError(
            f"{spec.path}: --run takes kernels in C; this one is written in dialect {spec.dialect!r}"
            f"{mend if spec.dialect == TRITON else ''}"
        )
    require_seen(space, source.text)
    tool = find_host_sanitizer()
    if tool is None:
        raise SetupError("g++ is not installed, which runs kernels on the CPU; in Debian the package g++")
    deadline = Deadline(time.perf_counter() + timeout_s)
    with ExitStack() as opened:
        folder = Path(opened.enter_context(scratch_folder()))
        stored = opened.enter_context(closing(StoredInputs(spec, folder)))
        maker = InstanceMaker(space, source, spec.dialect, {}, stored)
        expected = opened.enter_context(closing(_Expected(spec.reference, deadline)))
        threads = opened.enter_context(ThreadPoolExecutor(len(os.sched_getaffinity(0))))
        opened.callback(deadline.processes.kill)
        chosen = list(_named(space)) if config is None else [HostRun("as given", config, _RIGHT, NO_TIME)]
        begun = [threads.submit(_run, one, maker, tool, expected, deadline) for one in chosen]
        stage = Stage("running on the CPU", total=len(begun))
        on_stage(stage)
        for done, future in enumerate(as_completed(begun), 1):
            future.result()  # a broken reference ends all
            on_stage(replace(stage, done=done))
        runs = tuple(future.result() for future in begun)
    outputs = [item.name for item in spec.arguments if item.role in ("out", "inout")]
    compared = outputs if expected.compared is None else expected.compared
    uncompared = tuple(name for name in outputs if name not in compared)
    return HostRuns(spec.kernel, tool.version, runs, uncompared, len(space))


def _named(space: Space) -> Iterator[HostRun]:
    """The default, and the landmarks that differ from it, which need not be valid on every device."""
    default = space.spec.default
    yield HostRun("default", default, _RIGHT, NO_TIME)
    for landmark in space.spec.landmarks:
        if landmark.config != default:
            expected = frozenset((landmark.expect, Status.INVALID))
            yield HostRun(landmark.name, landmark.config, expected, NO_TIME)


def _run(
    planned: HostRun, maker: InstanceMaker, tool: HostSanitizer, expected: _Expected, deadline: Deadline
) -> HostRun:
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

    def compare(workload: Workload, files: Mapping[str, Path]) -> Outcome:
        outcome = expected.compare(workload, files)
        if outcome is PASSED:
            right.append(workload)
        return outcome

    workloads = instance.verify_workloads or (instance.workload,)
    small = workloads_for_cpu(workloads)
    larger = [one for one in workloads if one not in small]
    return replace(
        planned,
        outcome=tool.check(instance.source, workloads, deadline, larger, compare),
        sizes=len(right),
        larger=sum(not can_run_on_cpu(one) for one in larger),
        invalid=max(0, len(space.spec.verify_sizes) - len(workloads)),
    )


class _Expected:
    """The expected results of workloads, in a process of its own: references are the user's code."""

    def __init__(self, reference: Path, deadline: Deadline) -> None:
        self._reference, self._deadline = reference, deadline
        self._child = Child(_Reference, reference)
        self._asked = Lock()  # a child answers one call at a time
        self.compared: set[str] | None = None  # outputs that the reference returns; None before it has run

    def compare(self, workload: Workload, files: Mapping[str, Path]) -> Outcome:
        """Compare the arrays in files with what is expected; raises SetupError for a broken reference."""
        with self._asked:
            if self._deadline.is_over:
                return NO_TIME
            try:
                failure, self.compared = self._child.call(
                    _Reference.compare, workload, files, timeout_s=self._deadline.left_s(np.inf)
                )
            except ChildTimeout:
                return NO_TIME
            except ChildFailed as error:
                if isinstance(error, ChildRaised) and error.kind == BrokenReference.__name__:
                    raise BrokenReference(error.message) from None
                raise SetupError(f"{self._reference}: {error}") from None
        return failure or PASSED

    def close(self) -> None:
        """End the process."""
        self._child.kill()


class _Reference:
    """The state of that process: data that configurations share."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data: dict[str, WorkloadData] = {}

    def compare(self, workload: Workload, files: Mapping[str, Path]) -> tuple[Failure | None, set[str]]:
        """What differs after a run, and the names of the outputs that have an expected result."""
        data = self._data.get(workload.data_key)
        if data is None:
            data = self._data[workload.data_key] = prepare(workload, self._path)
        device = FakeDevice()
        buffers = WorkloadBuffers(workload, SharedBuffers(device, data))
        for guarded in buffers.arrays():
            if guarded.array.name in files:
                device.write(guarded.from_offset(0), np.fromfile(files[guarded.array.name], np.uint8))
        return compare_memory(buffers), {*data.expected}
