"""Times one verified configuration: takes samples until a rule stops it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from autotune.core.trials import Failure, Measurement, Rule, Status, median_interval
from autotune.evaluation.stopwatch import CLOCK_JUMP, Stopwatch
from autotune.evaluation.work_item import MeasurementPolicy, WorkItem

# the warm-ups of the default decide about the batch of a whole search: one may be slow by chance
MAYBE_SHORT = 20  # a warm-up below so many times `batch_ms` may be of a run that is to be batched
DECIDING_WARMUPS = 4
MAX_INCUMBENT_AGE_S = 0.05  # a machine that slows down stays slow for longer


class IncumbentTimer:
    """The incumbent, timed next to a configuration before the configuration is given up.

    One time of it counts for all configurations of the next `MAX_INCUMBENT_AGE_S`. `measurement` is the
    incumbent's earlier one. `open_stopwatch` returns None if the incumbent cannot run here; then only its
    earlier time counts.
    """

    def __init__(self, measurement: Measurement, open_stopwatch: Callable[[], Stopwatch | None]) -> None:
        self.measurement = measurement
        self.ratio: float | None = None  # its time over the earlier one; None: not measured
        self.is_running = False
        self._open = open_stopwatch
        self._latest, self._latest_s = 1.0, -math.inf

    def slower_ms(self, earlier_ms: float, batch: int) -> float:
        """The slower of the incumbent's earlier time and its time now, with `batch` runs per sample."""
        is_old = time.perf_counter() - self._latest_s > MAX_INCUMBENT_AGE_S
        if is_old and not self._time_now(earlier_ms, batch):
            return earlier_ms
        self.ratio = self._latest
        return earlier_ms * max(1.0, self.ratio)

    def _time_now(self, earlier_ms: float, batch: int) -> bool:
        """Time the incumbent; False if it cannot run here."""
        self.is_running = True  # it stays True after an error: the incumbent's own
        stopwatch = self._open()
        if stopwatch is not None:
            stopwatch.batch = batch
            self._latest = stopwatch.sample_ms(earlier_ms) / earlier_ms
            self._latest_s = time.perf_counter()
        self.is_running = False
        return stopwatch is not None


def measure(
    stopwatch: Stopwatch, item: WorkItem, verified_ms: float, incumbent: IncumbentTimer | None = None
) -> Measurement:
    """Time a configuration until a rule of the policy stops it; its verification took `verified_ms`.

    The last run is the configuration's own, so its result can be checked.
    """
    policy = item.policy
    is_usual = _verifies_as_timed(stopwatch, item)
    first_ms = verified_ms if is_usual else stopwatch.sample_ms() + stopwatch.start_ms
    if incumbent is not None:
        incumbent.ratio = None
        hopeless = _hopeless(stopwatch, policy, first_ms, incumbent)
        if hopeless is not None:
            return hopeless
    warmups = stopwatch.warm_up(policy.warmups, first_ms if first_ms > 0 else math.inf)
    if item.batch is None and min(warmups, default=math.inf) < MAYBE_SHORT * policy.batch_ms:
        warmups += stopwatch.warm_up(DECIDING_WARMUPS)
    stopwatch.choose_batch(min(warmups, default=0.0), policy.batch_ms, item.batch)
    samples_ms, rule = _samples(stopwatch, policy, incumbent)
    ratio = incumbent.ratio if incumbent else None
    measurement = Measurement(samples_ms, rule, warmups, stopwatch.batch, control_ratio=ratio)
    if policy.energy_s == 0:
        return measurement
    energy_j = stopwatch.energy_j(measurement.median_ms, policy.energy_s)
    return replace(measurement, energy_j=energy_j)


def _verifies_as_timed(stopwatch: Stopwatch, item: WorkItem) -> bool:
    """True unless a verification meets another cache or other clocks, or compiles between launches (PoCL)."""
    may_compile = not stopwatch.on_gpu and len(item.workload.launches) > 1
    return not (item.policy.call_mode.cache == "warm" or item.workload.settings or may_compile)


def _hopeless(
    stopwatch: Stopwatch, policy: MeasurementPolicy, first_ms: float, incumbent: IncumbentTimer
) -> Measurement | None:
    """The measurement of a configuration far slower than the incumbent; None while it may still win.

    One run may be slow by chance. Unless it is clearly too slow, the incumbent is timed again, and then the
    configuration, until one run is fast enough or `hopeless_runs` are too slow.
    """
    incumbent_ms = incumbent.measurement.alone_ms
    limit_ms = policy.hopeless_factor * incumbent_ms
    fastest_ms, runs = first_ms - stopwatch.start_ms, [first_ms]
    noise_ms = policy.gpu_noise_ms if stopwatch.on_gpu else policy.cpu_noise_ms
    clear_ms = max(policy.noise_factor * incumbent_ms, noise_ms)
    is_clear = clear_ms < fastest_ms <= CLOCK_JUMP * incumbent_ms
    if fastest_ms > limit_ms and not is_clear:
        limit_ms = policy.hopeless_factor * incumbent.slower_ms(incumbent_ms, 1)
        while fastest_ms > limit_ms and len(runs) < policy.hopeless_runs:
            runs.append(stopwatch.sample_ms())
            fastest_ms = min(fastest_ms, runs[-1])
    if fastest_ms <= limit_ms:
        return None
    return Measurement(tuple(runs), Rule.HOPELESS, control_ratio=incumbent.ratio)


def _samples(
    stopwatch: Stopwatch, policy: MeasurementPolicy, incumbent: IncumbentTimer | None
) -> tuple[tuple[float, ...], Rule]:
    """Take samples until a rule ends them, and return the rule.

    Samples slower than the incumbent's earlier time may be the machine's fault. So the incumbent is timed
    again, and the configuration takes one more sample right after it. It is given up only if the slower of
    the incumbent's two times beats it as well.
    """
    earlier_ms = incumbent.measurement.median_ms if incumbent else None
    began_s = time.perf_counter()
    samples: list[float] = []
    rule = None
    while rule is None:
        samples.append(stopwatch.sample_ms())
        rule = _stop(samples, policy, earlier_ms, began_s)
        if incumbent and rule in (Rule.SCREENED, Rule.BEATEN):
            slower_ms = incumbent.slower_ms(incumbent.measurement.median_ms, incumbent.measurement.batch)
            stopwatch.start_over()
            samples.append(stopwatch.sample_ms())
            rule = _stop(samples, policy, slower_ms, began_s)
    return tuple(samples), rule


def _stop(
    samples: Sequence[float], policy: MeasurementPolicy, incumbent_ms: float | None, began_s: float
) -> Rule | None:
    """The rule that ends sampling, or None.

    SCREENED ends it one sample early, because the screen's last sample follows the incumbent's new time.
    """
    if len(samples) < policy.screen - 1:
        return None
    if incumbent_ms is not None and min(samples) > policy.screen_factor * incumbent_ms:
        return Rule.SCREENED
    if len(samples) < policy.screen:
        return None
    if len(samples) >= policy.samples:
        return Rule.SAMPLES
    if time.perf_counter() - began_s > policy.seconds:
        return Rule.TIME
    if len(samples) > policy.screen:
        low, high = median_interval(samples)
        if high - low <= policy.precision * median(samples):
            return Rule.STEADY
        if incumbent_ms is not None and low > policy.race_factor * incumbent_ms:
            return Rule.BEATEN
    return None


def impossible(measurement: Measurement, floor_ms: float) -> Failure | None:
    """A failure if the median is 0, or below the least time that moving the bytes takes."""
    median_ms = measurement.median_ms
    if median_ms > 0 and median_ms >= floor_ms:
        return None
    detail = f"impossible time: {median_ms:.6f} ms, but moving its bytes takes at least {floor_ms:.6f} ms"
    return Failure(Status.MEASUREMENT_ERROR, detail)
