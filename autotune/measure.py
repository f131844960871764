"""Timing of one verified configuration: raw samples, and the rule that ended them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from autotune.devices.base import Device, Program
from autotune.jobs import Case, Protocol
from autotune.trials import Measurement
from autotune.workspace import Slot, Workspace

LAUNCH_MS = 0.02  # what a first run alone may take beside its work
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

    def energy_j(self, run_ms: float, seconds: float) -> float | None:
        """Energy of one run, the idle share included, from the device's counter over so many seconds of runs.

        Caches are left as the runs leave them; None where the device counts no energy.
        """
        began_j, began_s, runs = self._device.energy_j(), time.perf_counter(), 0
        if began_j is None:
            return None
        for slot in self._to_restore:
            slot.restore()
        repeats = 1 if self._restored else max(1, min(1000, round(ENERGY_BATCH_MS / max(run_ms, 1e-3))))
        while runs == 0 or time.perf_counter() - began_s < seconds:
            for slot in self._restored:
                slot.restore()
            self._workspace.run(self._program, self._case, repeats)
            runs += repeats
        ended_j = self._device.energy_j()
        return None if ended_j is None else (ended_j - began_j) / runs

    def choose_batch(self, run_ms: float, batch_ms: float) -> None:
        """Repeat short runs within a sample; a plan that needs a restore in between cannot be repeated."""
        if not self._restored and 0 < run_ms < batch_ms:
            self.batch = min(100, math.ceil(batch_ms / run_ms))


def measure(
    stopwatch: Stopwatch, protocol: Protocol, incumbent_ms: float | None, verified_ms: float
) -> Measurement:
    """Follow the protocol until one of its rules stops it; `verified_ms` is what the verification took."""
    lapse_ms = verified_ms - LAUNCH_MS
    if incumbent_ms is not None and lapse_ms > protocol.hopeless_factor * incumbent_ms:
        return Measurement((verified_ms,), "hopeless")
    warmups = tuple(stopwatch.sample_ms() for _ in range(protocol.warmups))
    stopwatch.choose_batch(min(warmups, default=0.0), protocol.batch_ms)
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
