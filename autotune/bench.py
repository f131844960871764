"""The worker's side: a device, the memory of each problem, and the jobs that use them.

Every function here runs in the worker's child. What a kernel can do to itself comes back as an Outcome;
what breaks the process is the parent's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from autotune.devices import Address, backend
from autotune.devices.base import LaunchError, Program
from autotune.jobs import Case, Job, Outcome
from autotune.measure import Stopwatch, measure
from autotune.model import Value
from autotune.problem import ProblemData, prepare
from autotune.trials import Binary, Failure, Measurement, Status, Verdict
from autotune.verify import attempt, check, verify
from autotune.workspace import Workspace


class Bench:
    """State of the child: one open device, workspaces by problem, the programs of finalists.

    The data of the first cases stay on the host. In device memory are only the arrays of what is held.
    """

    def __init__(self, address: Address, reference: Path, cases: tuple[Case, ...]) -> None:
        """Open the device and prepare the cases; raises SetupError when the reference is broken."""
        self._reference = reference
        self._held: dict[str, Workspace] = {}
        self._programs: dict[str, Program] = {}
        with ThreadPoolExecutor(1) as drawing:  # while the device is opened
            data = {case.data_key: drawing.submit(self._data, case) for case in cases}
            self.device = backend(address.backend).open_device(address.index)
            self._prepared = {key: future.result() for key, future in data.items()}
        self.compares = any(problem.expected for problem in self._prepared.values())

    def hold(self, cases: tuple[Case, ...]) -> None:
        """Have the arrays of these cases in device memory, and of no others.

        Raises SetupError, OutOfMemory, or what the reference raises.
        """
        for key in self._held.keys() - {case.data_key for case in cases}:
            del self._held[key]  # first, for two problems may not fit in the device's memory
        self.device.forget()
        for case in cases:
            key = case.data_key
            if key not in self._held:
                self._held[key] = Workspace(self.device, self._prepared.get(key) or self._data(case))
            self._held[key].slots(case)

    def workspace(self, case: Case) -> Workspace:
        """The workspace of a case's problem, the only one from now on if it was not held."""
        if case.data_key not in self._held:
            self.hold((case,))
        return self._held[case.data_key]

    def _data(self, case: Case) -> ProblemData:
        return prepare(case.problem, case.arrays, self._reference)

    def program(self, binary: Binary, keep: bool = False) -> Program:
        """Load a binary; only finalists, which take turns, are kept loaded."""
        program = self._programs.get(binary.sha256)
        if program is None:
            program = self.device.load(binary)
            if keep:
                self._programs[binary.sha256] = program
        return program


def ready(bench: Bench) -> bool:
    """Once the bench is open, inputs drawn and references computed: whether these say what is right."""
    return bench.compares


def hold(bench: Bench, cases: tuple[Case, ...]) -> None:
    """Put the arrays of these cases, and of no others, where runs find them; raises as `Bench.hold` does."""
    bench.hold(cases)
    if bench.device.info.kind == "gpu":
        bench.device.flush_cache()  # what it takes of the memory is missing now or never


def run_job(bench: Bench, job: Job) -> Outcome:
    """Verify on every size, run once on the main one, time it there, then look at what all runs left."""
    try:
        program = bench.program(job.binary)
        for case in job.checks:
            verdict = verify(program, case, bench.workspace(case))
            if verdict.failure is not None:
                return Outcome(verdict.failure)
        workspace = bench.workspace(job.case)
        verdict = attempt(program, job.case, workspace, inputs=False)
        if verdict.failure is not None:
            return Outcome(verdict.failure)
        stopwatch = Stopwatch(bench.device, program, job.case, workspace, repeatable=verdict.repeatable)
        measurement = measure(stopwatch, job, verdict.run_ms)
        if measurement.rule not in ("hopeless", "screened"):
            measurement = replace(measurement, conditions=bench.device.conditions())
        failure = check(job.case, workspace) or _impossible(measurement, job.floor_ms)
        return Outcome(failure, measurement)
    except LaunchError as error:
        return Outcome(_refused(error))


def verify_once(bench: Bench, binary: Binary, case: Case) -> Verdict:
    """Check one configuration on one problem, without timing it; its program stays loaded."""
    try:
        return verify(bench.program(binary, keep=True), case, bench.workspace(case))
    except LaunchError as error:
        return Verdict(_refused(error), repeatable=False)


def sample(
    bench: Bench, binary: Binary, case: Case, *, count: int, batch: int, repeatable: bool
) -> tuple[float, ...] | Failure:
    """Take `count` samples of a verified configuration, in ms, after warming up.

    A Failure when it cannot be launched, or the timed runs leave a wrong result behind.
    """
    try:
        program, workspace = bench.program(binary, keep=True), bench.workspace(case)
        stopwatch = Stopwatch(bench.device, program, case, workspace, repeatable=repeatable)
        stopwatch.batch = batch if repeatable else 1
        stopwatch.warm_up(1)
        samples = tuple(stopwatch.sample_ms() for _ in range(count))
        return check(case, workspace) or samples
    except LaunchError as error:
        return _refused(error)


def energy(
    bench: Bench, binary: Binary, case: Case, *, run_ms: float, seconds: float, repeatable: bool
) -> float | Failure | None:
    """Energy of one run of a verified configuration, in J; None where the device counts none.

    A Failure when it cannot be launched.
    """
    try:
        program, workspace = bench.program(binary, keep=True), bench.workspace(case)
        stopwatch = Stopwatch(bench.device, program, case, workspace, repeatable=repeatable)
        return stopwatch.energy_j(run_ms, seconds)
    except LaunchError as error:
        return _refused(error)


def conditions(bench: Bench) -> Mapping[str, Value]:
    """How the device does at the moment, as far as it tells."""
    return bench.device.conditions()


def _refused(error: LaunchError) -> Failure:
    return Failure(Status.LAUNCH_ERROR, str(error))


def _impossible(measurement: Measurement, floor_ms: float) -> Failure | None:
    fastest_ms = measurement.median_ms
    if fastest_ms > 0 and fastest_ms >= floor_ms:
        return None
    detail = (
        f"{fastest_ms:.6f} ms is less than the {floor_ms:.6f} ms that moving its bytes takes: not believed"
    )
    return Failure(Status.WRONG_RESULT, detail)
