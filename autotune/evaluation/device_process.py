"""The worker's side: a device, the memory of each problem, and the jobs that use them.

Every function here runs in the worker's child. What a kernel can do to itself comes back as an Outcome;
what breaks the process is the parent's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from autotune.core.records import Value
from autotune.core.trials import Binary, Failure, Measurement, Rule, Status, Verdict
from autotune.devices import Address, backend
from autotune.devices.base import Program
from autotune.errors import LaunchError, OutOfMemory
from autotune.evaluation.buffers import ProblemBuffers
from autotune.evaluation.inputs import ProblemData, prepare
from autotune.evaluation.measure import Control, Stopwatch, measure
from autotune.evaluation.verify import attempt, check, verify
from autotune.evaluation.work_item import Outcome, ProblemInstance, WorkItem


class DeviceState:
    """State of the child: one open device, workspaces by problem, the programs of finalists.

    The data of the first cases stay on the host. In device memory are only the arrays of what is held.
    """

    def __init__(self, address: Address, reference: Path, cases: tuple[ProblemInstance, ...]) -> None:
        """Open the device and prepare the cases; raises SetupError when the reference is broken."""
        self._reference = reference
        self._held: dict[str, ProblemBuffers] = {}
        self._programs: dict[str, Program] = {}
        with ThreadPoolExecutor(1) as drawing:  # while the device is opened
            data = {case.data_key: drawing.submit(self._data, case) for case in cases}
            self.device = backend(address.backend).open_device(address.index)
            self._prepared = {key: future.result() for key, future in data.items()}
        self.compared = frozenset(name for problem in self._prepared.values() for name in problem.expected)

    def hold(self, cases: tuple[ProblemInstance, ...]) -> None:
        """Have the arrays of these cases in device memory, and of no others.

        Raises SetupError, OutOfMemory, or what the reference raises.
        """
        for key in self._held.keys() - {case.data_key for case in cases}:
            del self._held[key]  # first, for two problems may not fit in the device's memory
        self.device.forget()
        for case in cases:
            key = case.data_key
            if key not in self._held:
                self._held[key] = ProblemBuffers(self.device, self._prepared.get(key) or self._data(case))
            self._held[key].guarded_buffers(case)

    def workspace(self, case: ProblemInstance) -> ProblemBuffers:
        """The workspace of a case's problem, the only one from now on if it was not held."""
        if case.data_key not in self._held:
            self.hold((case,))
        return self._held[case.data_key]

    def _data(self, case: ProblemInstance) -> ProblemData:
        return prepare(case.problem, case.arrays, self._reference)

    def has(self, binary: Binary) -> bool:
        """Whether the program of a binary is kept loaded."""
        return binary.sha256 in self._programs

    def program(self, binary: Binary, keep: bool = False) -> Program:
        """Load a binary; only those are kept loaded that take turns with others."""
        program = self._programs.get(binary.sha256)
        if program is None:
            program = self.device.load(binary)
            if keep:
                self._programs[binary.sha256] = program
        return program


def ready(state: DeviceState) -> frozenset[str]:
    """Wait until the device, inputs and references are ready; the arrays that a reference returns."""
    return state.compared


def hold(state: DeviceState, cases: tuple[ProblemInstance, ...]) -> None:
    """Put the arrays of these cases, and of no others, in place; raises what `DeviceState.hold` raises."""
    state.hold(cases)
    if state.device.info.kind == "gpu":
        state.device.flush_cache()  # what it takes of the memory is missing now or never


def run_job(state: DeviceState, job: WorkItem) -> Outcome:
    """Verify on every size, run once on the main one, time it there, then look at what all runs left."""
    known = job.incumbent and job.incumbent.measurement
    control = Control(known, partial(_beside, state, job)) if known else None
    try:
        program = state.program(job.binary)
        for case in job.checks:
            verdict = verify(program, case, state.workspace(case))
            if verdict.failure is not None:
                return Outcome(verdict.failure)
        workspace = state.workspace(job.case)
        verdict = attempt(program, job.case, workspace, inputs=False)
        if verdict.failure is not None:
            return Outcome(verdict.failure)
        stopwatch = Stopwatch(state.device, program, job.case, workspace, repeatable=verdict.repeatable)
        measurement = measure(stopwatch, job, verdict.run_ms, control)
        if measurement.rule not in (Rule.HOPELESS, Rule.SCREENED):
            measurement = replace(measurement, conditions=state.device.conditions())
        failure = check(job.case, workspace) or _impossible(measurement, job.floor_ms)
        return Outcome(failure, measurement)
    except LaunchError as error:
        is_doubtful = control is not None and control.is_running
        return Outcome(replace(_refused(error), is_doubtful=is_doubtful))


def _beside(state: DeviceState, job: WorkItem) -> Stopwatch | None:
    """The stopwatch of a job's incumbent; None where it is not at hand, or computes another problem."""
    incumbent = job.incumbent
    if incumbent is None or incumbent.binary is None or incumbent.case.data_key != job.case.data_key:
        return None
    workspace = state.workspace(job.case)
    try:
        workspace.guarded_buffers(incumbent.case)
    except OutOfMemory:  # its own scratch arrays have no room beside the others
        return None
    is_new = not state.has(incumbent.binary)
    program = state.program(incumbent.binary, keep=True)
    repeatable = incumbent.measurement.batch > 1
    stopwatch = Stopwatch(state.device, program, incumbent.case, workspace, repeatable=repeatable)
    if is_new:
        stopwatch.warm_up(1)
    return stopwatch


def verify_once(state: DeviceState, binary: Binary, case: ProblemInstance) -> Verdict:
    """Check one configuration on one problem, without timing it; its program stays loaded."""
    try:
        return verify(state.program(binary, keep=True), case, state.workspace(case))
    except LaunchError as error:
        return Verdict(_refused(error), repeatable=False)


def sample(
    state: DeviceState, binary: Binary, case: ProblemInstance, *, count: int, batch: int, repeatable: bool
) -> tuple[float, ...] | Failure:
    """Take `count` samples of a verified configuration, in ms, after warming up.

    A Failure when it cannot be launched, or the timed runs leave a wrong result behind.
    """
    try:
        program, workspace = state.program(binary, keep=True), state.workspace(case)
        stopwatch = Stopwatch(state.device, program, case, workspace, repeatable=repeatable)
        stopwatch.batch = batch if repeatable else 1
        stopwatch.warm_up(1)
        samples = tuple(stopwatch.sample_ms() for _ in range(count))
        return check(case, workspace) or samples
    except LaunchError as error:
        return _refused(error)


def energy(
    state: DeviceState,
    binary: Binary,
    case: ProblemInstance,
    *,
    run_ms: float,
    seconds: float,
    repeatable: bool,
) -> float | Failure | None:
    """Energy of one run of a verified configuration, in J; None where the device counts none.

    A Failure when it cannot be launched, or the runs leave a wrong result behind.
    """
    try:
        program, workspace = state.program(binary, keep=True), state.workspace(case)
        stopwatch = Stopwatch(state.device, program, case, workspace, repeatable=repeatable)
        energy_j = stopwatch.energy_j(run_ms, seconds)
        return check(case, workspace) or energy_j
    except LaunchError as error:
        return _refused(error)


def conditions(state: DeviceState) -> Mapping[str, Value]:
    """How the device does at the moment, as far as it tells."""
    return state.device.conditions()


def _refused(error: LaunchError) -> Failure:
    return Failure(Status.LAUNCH_ERROR, str(error))


def _impossible(measurement: Measurement, floor_ms: float) -> Failure | None:
    fastest_ms = measurement.median_ms
    if fastest_ms > 0 and fastest_ms >= floor_ms:
        return None
    detail = (
        f"{fastest_ms:.6f} ms is less than the {floor_ms:.6f} ms that moving its bytes takes: not believed"
    )
    return Failure(Status.MEASUREMENT_ERROR, detail)
