"""Timing of one verified configuration: raw samples, and the rule that ended them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from autotune.devices.base import Device, Program
from autotune.jobs import Case, Job, Protocol
from autotune.trials import Measurement
from autotune.workspace import Slot, Workspace

LAUNCH_MS = 0.02  # what a first run alone may take beside its work
SETTLING_MS = 10.0  # a CPU's threads and caches need about as long, and a first run a tenth of it
MOST_WARMUPS = 100
LONGEST_BATCH_MS = 20.0  # a run that takes long is far above the timer's resolution, whatever others take
ENERGY_RESOLUTION = 0.02  # by which two energies must differ: the counter's steps, the temperature's drift
ENERGY_BATCH_MS = 20.0  # runs that are queued at once, so that the device is never idle in between


class Stopwatch:
    """Takes samples of one configuration, each after a restore where one is needed and with cold caches.

    The caches of a CPU are left warm: its last level holds most problems, and programs find it warm.
    """

    def __init__(
        self, device: Device, program: Program, case: Case, workspace: Workspace, *, repeatable: bool
    ) -> None:
        self._device = device
        self._program = program
        self._case = case
        self._workspace = workspace
        slots = workspace.slots(case)
        changed = [slot for slot in slots if slot.array.role == "inout"]
        self._restored: Sequence[Slot] = [] if repeatable else changed
        # the first run starts from poison again, so that what the timed runs leave behind is their own work
        self._to_restore: Sequence[Slot] = [slot for slot in slots if slot.array.role != "in"]
        self._cold = device.info.kind == "gpu"
        self.batch = 1

    def sample_ms(self) -> float:
        """Device time of one run of the plan, the mean of a batch where runs are batched."""
        for slot in self._to_restore:
            slot.restore()
        self._to_restore = self._restored
        if self._cold:
            self._device.flush_cache()
        return self._workspace.run(self._program, self._case, self.batch) / self.batch

    @property
    def first_run_ms(self) -> float:
        """What a first run may take beside its work."""
        return LAUNCH_MS if self._cold else SETTLING_MS / 10

    def warm_up(self, count: int) -> tuple[float, ...]:
        """Samples that do not count, in ms: so many, and on a CPU as many as it takes to settle."""
        samples: list[float] = []
        while len(samples) < count or (
            not self._cold and sum(samples) < SETTLING_MS and len(samples) < MOST_WARMUPS
        ):
            samples.append(self.sample_ms())
        return tuple(samples)

    def energy_j(self, run_ms: float, seconds: float) -> float | None:
        """Energy of one run, the idle share included, from the device's counter over so many seconds of runs.

        Where arrays have to be restored, what that takes is measured alone for as long, and subtracted.
        Caches are left as the runs leave them; None where the device counts no energy.
        """
        for slot in self._to_restore:
            slot.restore()
        repeats = 1 if self._restored else max(1, min(1000, round(ENERGY_BATCH_MS / max(run_ms, 1e-3))))
        self._restore_and_run(1)  # so that there is something to restore from the first on
        whole_j = self._each_j(lambda: self._restore_and_run(repeats), seconds)
        restore_j = self._each_j(self._restore_alone, seconds) if self._restored else 0.0
        if whole_j is None or restore_j is None:
            return None
        return max(whole_j - restore_j, ENERGY_RESOLUTION * whole_j) / repeats

    def _each_j(self, work: Callable[[], object], seconds: float) -> float | None:
        """Energy of doing something once, as the mean over so many seconds."""
        began_j, began_s, count = self._device.energy_j(), time.perf_counter(), 0
        if began_j is None:
            return None
        while count == 0 or time.perf_counter() - began_s < seconds:
            work()
            count += 1
        ended_j = self._device.energy_j()
        return None if ended_j is None else (ended_j - began_j) / count

    def _restore_and_run(self, repeats: int) -> None:
        for slot in self._restored:
            slot.restore()
        self._workspace.run(self._program, self._case, repeats)

    def _restore_alone(self) -> None:
        for slot in self._restored:
            slot.is_pristine = False
            slot.restore()
            slot.guards()  # waits, as a run does

    def choose_batch(self, run_ms: float, batch_ms: float, agreed: int | None) -> None:
        """Repeat runs within a sample, as often as is agreed or as short ones need it.

        Only the first run of a sample is cold, so what is compared has to have the same batch. A plan that
        needs a restore in between cannot be repeated.
        """
        if not self._restored and run_ms > 0:
            needed = min(100, math.ceil(batch_ms / run_ms))
            self.batch = bounded_batch(needed if agreed is None else agreed, run_ms)


def bounded_batch(batch: int, run_ms: float) -> int:
    """The batch, or as many runs as fit in a sample that is long enough by any measure."""
    return max(1, min(batch, int(LONGEST_BATCH_MS / run_ms)))


def measure(stopwatch: Stopwatch, job: Job, verified_ms: float) -> Measurement:
    """Follow the job's protocol until one of its rules stops it; `verified_ms` is what verification took."""
    protocol, incumbent = job.protocol, job.incumbent
    if incumbent and verified_ms - stopwatch.first_run_ms > protocol.hopeless_factor * incumbent.alone_ms:
        return Measurement((verified_ms,), "hopeless")
    warmups = stopwatch.warm_up(protocol.warmups)
    stopwatch.choose_batch(min(warmups, default=0.0), protocol.batch_ms, job.batch)
    incumbent_ms = incumbent.median_ms if incumbent else None
    began = time.perf_counter()
    samples: list[float] = []
    while True:
        samples.append(stopwatch.sample_ms())
        rule = _stop(samples, protocol, incumbent_ms, time.perf_counter() - began)
        if rule is not None:
            measurement = Measurement(tuple(samples), rule, warmups, stopwatch.batch)
            if protocol.energy_s == 0:
                return measurement
            energy_j = stopwatch.energy_j(measurement.median_ms, protocol.energy_s)
            return replace(measurement, energy_j=energy_j)


def _stop(
    samples: list[float], protocol: Protocol, incumbent_ms: float | None, elapsed_s: float
) -> str | None:
    if len(samples) < protocol.screen:
        return None
    if incumbent_ms is not None and min(samples) > protocol.screen_factor * incumbent_ms:
        return "screened"
    if len(samples) >= protocol.samples:
        return "samples"
    if elapsed_s > protocol.seconds:
        return "time"
    if len(samples) > protocol.screen:
        so_far = Measurement(tuple(samples), "")
        low, high = so_far.interval_ms
        if high - low <= protocol.precision * so_far.median_ms:
            return "steady"
        if incumbent_ms is not None and low > protocol.race_factor * incumbent_ms:
            return "beaten"
    return None
