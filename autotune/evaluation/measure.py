"""Timing of one verified configuration: raw samples, and the rule that ended them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from autotune.core.trials import Measurement, Rule, median_interval
from autotune.devices.base import Device, Program
from autotune.evaluation.buffers import GuardedBuffer, ProblemBuffers
from autotune.evaluation.work_item import MeasurementPolicy, ProblemInstance, WorkItem

LAUNCH_MS = 0.02  # what a first run alone may take beside its work
SETTLING_MS = 10.0  # a CPU's threads and caches need about as long, and a first run a tenth of it
MAX_WARMUPS = 100
MAX_BATCH_MS = 20.0  # a run that takes long is far above the timer's resolution, whatever others take
ENERGY_RESOLUTION = 0.02  # by which two energies must differ: the counter's steps, the temperature's drift
ENERGY_BATCH_MS = 20.0  # runs that are queued at once, so that the device is never idle in between


class Stopwatch:
    """Takes samples of one configuration, each after a restore where one is needed and with cold caches.

    The caches of a CPU are left warm: its last level holds most problems, and programs find it warm.
    """

    def __init__(
        self,
        device: Device,
        program: Program,
        case: ProblemInstance,
        workspace: ProblemBuffers,
        *,
        repeatable: bool,
    ) -> None:
        self._device = device
        self._program = program
        self._case = case
        self._workspace = workspace
        guarded_buffers = workspace.guarded_buffers(case)
        changed = [guarded for guarded in guarded_buffers if guarded.array.role == "inout"]
        self._restored: Sequence[GuardedBuffer] = [] if repeatable else changed
        self._written = [guarded for guarded in guarded_buffers if guarded.array.role != "in"]
        self._outputs = [guarded for guarded in guarded_buffers if guarded.array.role == "out"]
        self._turn = 0
        self.start_over()
        self._cold = device.info.kind == "gpu"
        self.batch = 1

    def start_over(self) -> None:
        """Have the next run start from poison, so that what it leaves behind is its own work."""
        self._to_restore: Sequence[GuardedBuffer] = self._written

    def sample_ms(self) -> float:
        """Device time of one run of the plan, the mean of a batch where runs are batched."""
        self._put_back()
        if self._cold:
            self._device.flush_cache()
        return self._workspace.run(self._program, self._case, self.batch) / self.batch

    def _put_back(self) -> None:
        """Restore what runs change, and make every output wrong: a kernel must not find its work done."""
        for guarded in self._to_restore:
            guarded.restore()
        self._to_restore = self._restored
        for guarded in self._outputs:
            guarded.spoil(self._turn)
        self._turn += 1

    @property
    def first_run_ms(self) -> float:
        """What a first run may take beside its work."""
        return LAUNCH_MS if self._cold else SETTLING_MS / 10

    def warm_up(self, count: int) -> tuple[float, ...]:
        """Samples that do not count, in ms: so many, and on a CPU as many as it takes to settle."""
        samples: list[float] = []
        while len(samples) < count or (
            not self._cold and sum(samples) < SETTLING_MS and len(samples) < MAX_WARMUPS
        ):
            samples.append(self.sample_ms())
        return tuple(samples)

    def energy_j(self, run_ms: float, seconds: float) -> float | None:
        """Energy of one run, the idle share included, from the device's counter over so many seconds of runs.

        Where arrays have to be restored, what that takes is measured alone for as long, and subtracted.
        Caches are left as the runs leave them; None where the device counts no energy.
        """
        repeats = 1 if self._restored else max(1, min(1000, round(ENERGY_BATCH_MS / max(run_ms, 1e-3))))
        self._restore_and_run(1)  # so that there is something to restore from the first on
        whole_j = self._each_j(lambda: self._restore_and_run(repeats), seconds)
        restore_j = self._each_j(self._restore_alone, seconds) if self._restored else 0.0
        if self._restored:
            self._restore_and_run(1)  # what is left behind is looked at
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
        self._put_back()
        self._workspace.run(self._program, self._case, repeats)

    def _restore_alone(self) -> None:
        for guarded in self._restored:
            guarded.is_pristine = False
            guarded.restore()
            guarded.guards()  # waits, as a run does

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
    return max(1, min(batch, int(MAX_BATCH_MS / run_ms)))


class Control:
    """The incumbent, timed beside a configuration that is about to be given up because of it.

    `known` is its measurement. `open_stopwatch` starts its stopwatch at the first use; None where it cannot
    be run, and then its known time stands alone.
    """

    def __init__(self, known: Measurement, open_stopwatch: Callable[[], Stopwatch | None]) -> None:
        self.known = known
        self.ratio: float | None = None  # what it took at last, over its known time
        self.is_running = False
        self._open = open_stopwatch

    def slower_ms(self, known_ms: float, batch: int) -> float:
        """The slower of its known time and a run just now, of so many runs a sample."""
        self.is_running = True
        stopwatch = self._open()
        now_ms = known_ms
        if stopwatch is not None:
            stopwatch.batch = batch
            now_ms = stopwatch.sample_ms()
            self.ratio = now_ms / known_ms
        self.is_running = False
        return max(known_ms, now_ms)


def measure(
    stopwatch: Stopwatch, job: WorkItem, verified_ms: float, control: Control | None = None
) -> Measurement:
    """Follow the job's protocol until one of its rules stops it.

    Args:
        stopwatch: Of the configuration.
        job: With the protocol, and the batch of the search.
        verified_ms: What a run of the verification took.
        control: The incumbent; None where there is none.

    Returns:
        The samples, the last of which is always the configuration's own run.

    """
    protocol = job.protocol
    hopeless = control and _hopeless(stopwatch, protocol, verified_ms, control)
    if hopeless:
        return hopeless
    warmups = stopwatch.warm_up(protocol.warmups)
    stopwatch.choose_batch(min(warmups, default=0.0), protocol.batch_ms, job.batch)
    limit_ms = control.known.median_ms if control else None
    is_paired = False  # with a run of the incumbent just before the latest sample
    began = time.perf_counter()
    samples: list[float] = []
    while True:
        samples.append(stopwatch.sample_ms())
        rule = _stop(samples, protocol, limit_ms, time.perf_counter() - began)
        if control and rule in (Rule.SCREENED, Rule.BEATEN) and not is_paired:
            limit_ms, is_paired = control.slower_ms(control.known.median_ms, control.known.batch), True
            stopwatch.start_over()
            continue
        if rule is not None:
            ratio = control.ratio if control else None
            measurement = Measurement(tuple(samples), rule, warmups, stopwatch.batch, control=ratio)
            if protocol.energy_s == 0:
                return measurement
            energy_j = stopwatch.energy_j(measurement.median_ms, protocol.energy_s)
            return replace(measurement, energy_j=energy_j)
        if control and is_paired:
            limit_ms, is_paired = control.known.median_ms, False


def _hopeless(
    stopwatch: Stopwatch, protocol: MeasurementPolicy, verified_ms: float, control: Control
) -> Measurement | None:
    """The runs of a configuration that cannot win; None while that is not sure."""
    alone_ms = control.known.alone_ms
    limit_ms = protocol.hopeless_factor * alone_ms
    fastest_ms, runs = verified_ms - stopwatch.first_run_ms, [verified_ms]
    if limit_ms < fastest_ms <= protocol.noise_factor * alone_ms:
        limit_ms = protocol.hopeless_factor * control.slower_ms(alone_ms, 1)
        while fastest_ms > limit_ms and len(runs) < protocol.hopeless_runs:
            runs.append(stopwatch.sample_ms())
            fastest_ms = min(fastest_ms, runs[-1])
    if fastest_ms <= limit_ms:
        return None
    return Measurement(tuple(runs), Rule.HOPELESS, control=control.ratio)


def _stop(
    samples: list[float], protocol: MeasurementPolicy, incumbent_ms: float | None, elapsed_s: float
) -> Rule | None:
    """The rule that ends sampling; SCREENED one sample early, so that a control fits in before the last."""
    if len(samples) < protocol.screen - 1:
        return None
    if incumbent_ms is not None and min(samples) > protocol.screen_factor * incumbent_ms:
        return Rule.SCREENED
    if len(samples) < protocol.screen:
        return None
    if len(samples) >= protocol.samples:
        return Rule.SAMPLES
    if elapsed_s > protocol.seconds:
        return Rule.TIME
    if len(samples) > protocol.screen:
        low, high = median_interval(samples)
        if high - low <= protocol.precision * median(samples):
            return Rule.STEADY
        if incumbent_ms is not None and low > protocol.race_factor * incumbent_ms:
            return Rule.BEATEN
    return None
