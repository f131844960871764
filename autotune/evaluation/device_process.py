"""The device process: an open device, the memory of each workload, and the functions that use them.

A configuration's failure is returned as a value; `run_and_reset_clocks` turns a refused launch into one. The
worker handles errors that break the process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core import timeline
from autotune.core.text import size_text
from autotune.core.trials import Binary, Failure, Measurement, Rule, Status
from autotune.devices import Address, backend
from autotune.devices.base import Buffer, Device, Program
from autotune.errors import Blame, ImpossibleTime, LaunchError, OutOfMemory, OutsideArrays
from autotune.evaluation.buffers import SharedBuffers, WorkloadBuffers, device_bytes, launch_arguments
from autotune.evaluation.measure import IncumbentTimer, impossible, measure
from autotune.evaluation.preparation import Preparation
from autotune.evaluation.stopwatch import Stopwatch
from autotune.evaluation.verify import (
    after_other_inputs,
    changed_inouts,
    compare_memory,
    run_and_check,
    verify,
    wrong_arrays,
)
from autotune.evaluation.work_item import WorkItem
from autotune.evaluation.wrong_result import WrongArrays
from autotune.problem.inputs import draw_inputs, load_array
from autotune.problem.reference_cache import ReferenceCache, save_results
from autotune.problem.workload import Workload, verification_order

USUAL_SHARE = 1 / 8  # of device memory: the setting's workloads stay if they and the others take no more


@dataclass(frozen=True)
class DeviceSetting:
    """The device and the workloads that a device process is started for."""

    address: Address
    reference: Path
    workloads: tuple[Workload, ...] = ()  # the process begins to prepare them at once
    wrong_arrays: WrongArrays | None = None  # saves the arrays of wrong results
    reference_cache: ReferenceCache | None = None  # keeps the results of slow references


class DeviceState:
    """State of the device process: the device, buffers, loaded programs, and items that have passed.

    The data of the setting's workloads stay on the host. Device memory holds what was loaded last, and the
    setting's workloads where there is room.
    """

    def __init__(self, setting: DeviceSetting) -> None:
        """Begin to prepare the workloads."""
        self._address, self._wrong_arrays = setting.address, setting.wrong_arrays
        self.reference = setting.reference
        self._loaded: dict[str, SharedBuffers] = {}
        self._inputs: dict[str, Mapping[str, NDArray[Any]]] = {}  # of workloads that run without checks
        self.programs: dict[str, Program] = {}  # that stay loaded, by the hashes of their binaries
        self.passed: set[tuple[str, str]] = set()  # keys of items that were right on their verify_workloads
        self._incumbent_timer: IncumbentTimer | None = None
        self._clocks = {name for workload in setting.workloads for name, _ in workload.settings}
        self.preparation = Preparation(setting.reference, setting.workloads, setting.reference_cache)

    @cached_property
    def device(self) -> Device:
        """The device, opened when it is first used."""
        with timeline.span("open the device"):
            device = backend(self._address.backend).open_device(self._address.index)
        device.clocks.check(self._clocks)
        return device

    def load(self, workloads: tuple[Workload, ...], usual: tuple[Workload, ...] = ()) -> frozenset[str]:
        """Allocate the arrays of these workloads in device memory, and free those of others.

        The `usual` workloads also stay if all together are small. Inputs that others share with these stay,
        too: all sizes of a sweep may have the same weights.

        Returns the data keys of the workloads that are in memory then.
        Raises SetupError, OutOfMemory, or what the reference raises.
        """
        memory_bytes = sum(map(device_bytes, (*usual, *workloads)))
        stays = usual if memory_bytes <= USUAL_SHARE * self.device.info.memory_bytes else ()
        gone = self._loaded.keys() - {workload.data_key for workload in (*stays, *workloads)}
        earlier = [self._loaded.pop(key) for key in gone]
        for shared in earlier:  # first: old and new problems may not fit in memory together
            shared.keep_inputs_of(workloads)
        self.device.forget()
        try:
            for workload in workloads:
                key = workload.data_key
                if key not in self._loaded:
                    self._loaded[key] = SharedBuffers(
                        self.device, self.preparation.data_of(workload), earlier
                    )
                self.buffers(workload).arrays()
        except OutOfMemory:  # other programs have the rest
            if not stays:
                raise
            return self.load(workloads)
        return self.loaded

    @property
    def loaded(self) -> frozenset[str]:
        """The data keys of the workloads in device memory."""
        return frozenset(self._loaded)

    def buffers(self, workload: Workload) -> WorkloadBuffers:
        """Return the buffers of a workload; load it alone if it has none yet."""
        if workload.data_key not in self._loaded:
            self.load((workload,))
        return WorkloadBuffers(workload, self._loaded[workload.data_key])

    def inputs(self, workload: Workload) -> Mapping[str, NDArray[Any]]:
        """Draw the inputs of a workload, once; no reference runs."""
        if workload.data_key not in self._inputs:
            self._inputs[workload.data_key] = draw_inputs(workload.problem, workload.arrays)
        return self._inputs[workload.data_key]

    def rounding_is_tolerated(self, workload: Workload, usual: Workload) -> bool:
        """True if rounding alone explains no difference on other data than the usual."""
        return self.preparation.rounding_is_tolerated(workload, usual)

    def reference_s(self, workload: Workload) -> float:
        """The time that the reference may take for a workload; 0 if it is not known."""
        return self.preparation.reference_s(workload)

    def incumbent_timer(self, item: WorkItem) -> IncumbentTimer | None:
        """The incumbent to time next to a configuration, the same object until another one leads."""
        incumbent = item.incumbent
        if incumbent is None:
            return None
        if not item.runs_incumbent:
            return IncumbentTimer(incumbent.measurement, lambda: None)
        if self._incumbent_timer is None or self._incumbent_timer.measurement != incumbent.measurement:
            self._incumbent_timer = IncumbentTimer(
                incumbent.measurement, partial(_incumbent_stopwatch, self, item)
            )
        return self._incumbent_timer

    def save_arrays(self, failure: Failure, buffers: WorkloadBuffers) -> Failure:
        """Save the arrays of a wrong result that a check just found, if wanted; the failure says where."""
        if self._wrong_arrays is None or failure.status is not Status.WRONG_RESULT:
            return failure
        where = self._wrong_arrays.write(failure.detail, wrong_arrays(buffers))
        return replace(failure, detail=f"{failure.detail}{where}")

    def workloads_to_verify(self, item: WorkItem) -> tuple[Workload, ...]:
        """The workloads to verify a configuration on before it is timed, in order.

        Only the first one if the configuration has passed all of them before: the sizes of a sweep share
        them. The first one stays because a program's first run is slow: if it were timed, it might make the
        configuration look hopeless.
        """
        workloads = verification_order(item.verify_workloads, self.device.info.kind)
        return workloads[:1] if item.verify_key in self.passed else workloads

    def program(self, binary: Binary, keep: bool = False) -> Program:
        """Load a binary; `keep` it loaded for configurations that run again and again."""
        program = self.programs.get(binary.sha256) or self.device.load(binary)
        if keep:
            self.programs[binary.sha256] = program
        return program


def open_device(state: DeviceState) -> None:
    """Open the device, and prepare no problem that may take much memory."""
    _ = state.device


def set_up(state: DeviceState) -> frozenset[str]:
    """Open the device; return the arrays that the reference returns. Raises SetupError if it is broken."""
    state.preparation.begin_last()  # while the device is opened
    _ = state.device
    return state.preparation.compared


def load(state: DeviceState, workloads: tuple[Workload, ...], usual: tuple[Workload, ...]) -> frozenset[str]:
    """Load workloads into device memory; returns the data keys of all that are there then."""
    loaded = state.load(workloads, usual)
    if state.device.info.kind == "gpu":
        state.device.flush_cache()  # allocates its buffer now: a lack of memory shows here
    return loaded


def run_and_reset_clocks(
    state: DeviceState, function: Callable[..., Any], *arguments: Any, **options: Any
) -> Any:
    """Run a function on the device, then restore the device's settings; a refused launch is a Failure."""
    try:
        return function(state, *arguments, **options)
    except LaunchError as error:
        return _launch_failure(error)
    finally:
        state.device.clocks.restore()


def run_with_memory(
    state: DeviceState, function: Callable[..., Any], *arguments: Any, **options: Any
) -> tuple[Any, frozenset[str]]:
    """The answer of `run_and_reset_clocks`, and the data keys of the workloads that are in memory then."""
    return run_and_reset_clocks(state, function, *arguments, **options), state.loaded


def verify_and_time(state: DeviceState, item: WorkItem) -> Measurement | Failure:
    """Verify a configuration on `workloads_to_verify`, time it on its own, and verify its arrays again."""
    incumbent = state.incumbent_timer(item)
    try:
        with timeline.span("load the binary"):
            program = state.program(item.binary)
        for workload in state.workloads_to_verify(item):
            buffers = state.buffers(workload)
            with timeline.span(f"verify at {size_text(workload.problem.sizes)}"):
                failure = verify(program, buffers)
            if failure is not None:
                return state.save_arrays(failure, buffers)
        state.passed.add(item.verify_key)
        buffers = state.buffers(item.workload)
        failure, run_ms = run_and_check(program, buffers, inputs=False)
        if failure is not None:
            return state.save_arrays(failure, buffers)
        stopwatch = Stopwatch(program, buffers, item.policy.call_mode, changed=changed_inouts(buffers))
        with timeline.span("take samples"):
            measurement = measure(stopwatch, item, run_ms, incumbent)
        if measurement.rule not in (Rule.HOPELESS, Rule.SCREENED):
            measurement = replace(measurement, conditions=state.device.conditions())
        failure = compare_memory(buffers) or impossible(measurement, item.floor_ms)
        return state.save_arrays(failure, buffers) if failure else measurement
    except LaunchError as error:
        blame = Blame.PROCESS if incumbent is not None and incumbent.is_running else Blame.CONFIGURATION
        return replace(_launch_failure(error), blame=blame)


def _incumbent_stopwatch(state: DeviceState, item: WorkItem) -> Stopwatch | None:
    """The stopwatch of an incumbent that runs; None for other data, or without memory for it."""
    incumbent = item.incumbent
    assert incumbent is not None and incumbent.binary is not None  # as `runs_incumbent` says
    if incumbent.workload.data_key != item.workload.data_key:
        return None
    buffers = state.buffers(incumbent.workload)
    try:
        buffers.arrays()
    except OutOfMemory:  # its own scratch arrays do not fit beside the others
        return None
    is_new = incumbent.binary.sha256 not in state.programs
    program = state.program(incumbent.binary, keep=True)
    changed = () if incumbent.measurement.batch > 1 else None
    stopwatch = Stopwatch(program, buffers, item.policy.call_mode, changed=changed)
    if is_new:
        stopwatch.warm_up(1)
    return stopwatch


def verify_once(state: DeviceState, binary: Binary, workload: Workload) -> Failure | None:
    """Verify a configuration on one workload without timing it; its program stays loaded."""
    buffers = state.buffers(workload)
    failure = verify(state.program(binary, keep=True), buffers)
    return failure and state.save_arrays(failure, buffers)


def is_repeatable(state: DeviceState, workload: Workload) -> bool:
    """True if what ran last on a workload can run again without restoring its arrays."""
    return not changed_inouts(state.buffers(workload))


def verify_often(
    state: DeviceState,
    binary: Binary,
    workload: Workload,
    count: int,
    limit_s: float,
    kept: tuple[str, ...] = (),
) -> Failure | None:
    """Check the results of `count` runs of a verified configuration, or of as many as `limit_s` allows.

    Before every other run comes one on inputs of which a few elements differ. These runs between find the
    arrays in `kept` as the previous run left them.
    """
    began_s = time.perf_counter()
    program, buffers = state.program(binary, keep=True), state.buffers(workload)
    for number in range(1, count + 1):
        if number % 2:
            failure = after_other_inputs(program, buffers, few=True)
        else:
            failure = run_and_check(program, buffers, kept=kept, inputs=False).failure
        if failure is not None:
            left = "" if number % 2 or not kept else f", with {' and '.join(kept)} as the run before left it"
            return replace(failure, detail=f"in run {number} of the same{left}: {failure.detail}")
        if time.perf_counter() - began_s > limit_s:
            break
    return None


def run_bare(state: DeviceState, binary: Binary, workload: Workload) -> None:
    """Run a configuration once on arrays without guard zones, for sanitizers and profilers.

    Results are not checked. Arrays without an input are left as they were allocated.
    """
    program, device, inputs = state.program(binary, keep=True), state.device, state.inputs(workload)
    parts: dict[str, Callable[[int], Buffer]] = {}
    for array in workload.arrays:
        if array.name in workload.used_names:
            buffer = device.allocate(array.size_bytes)
            parts[array.name] = partial(_from_offset, device, buffer, array.size_bytes)
            if array.name in inputs:
                device.write(buffer, np.ascontiguousarray(inputs[array.name]).reshape(-1).view(np.uint8))
    device.run(program, workload.launches, launch_arguments(device, program, workload, parts))


def _from_offset(device: Device, buffer: Buffer, size_bytes: int, offset_bytes: int) -> Buffer:
    """The rest of a buffer from an offset on."""
    return device.region(buffer, offset_bytes, size_bytes - offset_bytes) if offset_bytes else buffer


def arrays_after_run(
    state: DeviceState, binary: Binary, workload: Workload, names: tuple[str, ...] | None = None
) -> dict[str, str]:
    """Run a configuration once, and return the files that its arrays were saved to, by argument name.

    `names` names the arrays to save; None saves all.
    """
    buffers = state.buffers(workload)
    buffers.run_anew(state.program(binary))
    files = {}
    for guarded in (buffer for buffer in buffers.arrays() if names is None or buffer.array.name in names):
        with tempfile.NamedTemporaryFile(suffix=".npy", delete=False) as file:
            np.save(file, guarded.content())
        files[guarded.array.name] = file.name
    return files


def read_and_remove(path: str) -> NDArray[Any]:
    """Load the array in a .npy file and delete the file."""
    array: NDArray[Any] = np.array(load_array(path))
    Path(path).unlink()
    return array


def run_for_results(
    state: DeviceState,
    binary: Binary,
    verify_workloads: tuple[Workload, ...],
    workload: Workload,
    path: Path,
) -> Failure | None:
    """Verify a configuration at the sizes to verify, then write its results for a workload.

    Args:
        state: The state of the device process.
        binary: The configuration's binary.
        verify_workloads: The workloads of the sizes to verify.
        workload: A workload without expected results.
        path: The file for the arrays that the reference returns.
    """
    program, buffers = state.program(binary), state.buffers(workload)
    for verify_workload in verify_workloads:
        failure = verify(program, state.buffers(verify_workload))
        if failure is not None:
            return failure
    failure, _ = run_and_check(program, buffers)
    if failure is not None:
        return failure
    compared = [guarded for guarded in buffers.arrays() if guarded.array.name in state.preparation.compared]
    with path.open("wb") as file:
        save_results(file, {guarded.array.name: guarded.values(0, guarded.count)[0] for guarded in compared})
    return None


def _launch_failure(error: LaunchError) -> Failure:
    """The failure of a configuration that a device cannot launch or cannot time."""
    statuses = {ImpossibleTime: Status.MEASUREMENT_ERROR, OutsideArrays: Status.OUT_OF_BOUNDS}
    return Failure(statuses.get(type(error), Status.LAUNCH_ERROR), str(error))
