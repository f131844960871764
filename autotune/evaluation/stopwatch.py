"""Takes samples of one configuration: restores its arrays, flushes caches, and reads the device's timer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence

from autotune.core.trials import USUAL, CallMode
from autotune.devices.base import Program
from autotune.errors import ImpossibleTime
from autotune.evaluation.buffers import WorkloadBuffers
from autotune.evaluation.guarded_buffer import GuardedBuffer

GPU_START_MS = 0.02  # overhead of a run on a GPU that no other run precedes
CPU_START_MS = 1.0  # the same on a CPU
SETTLING_MS = 5.0  # in which a CPU's threads and caches settle
MAX_WARMUPS = 100
MAX_POISONED_BYTES = 2**18  # larger scratch arrays are not poisoned before a timed run: it would slow it
MAX_BATCH_MS = 20.0  # the longest batch: its sample is far above the timer's resolution
ENERGY_RESOLUTION = 0.02  # relative: the counter has steps, and temperature drifts
ENERGY_BATCH_MS = 20.0  # runs queued at once, to keep the device busy
MAX_SAMPLES_TAKEN = 3  # for one sample if the clock jumps ahead and back
CLOCK_JUMP = 1000.0  # times as long as expected: the clock has jumped, because no busy machine is so slow


class Stopwatch:
    """Takes samples of one configuration, restoring its arrays and flushing the caches as needed.

    Unless the call mode says so, the caches of a GPU are cold. A CPU's stay warm: its last level holds
    most problems, and programs find it warm.
    """

    def __init__(
        self,
        program: Program,
        buffers: WorkloadBuffers,
        call_mode: CallMode = USUAL,
        *,
        changed: Collection[str] | None,
    ) -> None:
        """`changed` names the inout arrays to restore because a run changes them; None for all."""
        self._device, self._settings = buffers.device, buffers.workload.settings
        self._program = program
        self._buffers = buffers
        arrays = buffers.arrays()
        self._restored: Sequence[GuardedBuffer] = [
            guarded
            for guarded in arrays
            if guarded.array.role == "inout" and (changed is None or guarded.array.name in changed)
        ]
        self._written = [guarded for guarded in arrays if guarded.array.role != "in"]
        self._outputs = [guarded for guarded in arrays if guarded.array.role == "out"]
        self._scratch = [
            guarded
            for guarded in arrays
            if guarded.array.role == "scratch" and guarded.size_bytes <= MAX_POISONED_BYTES
        ]
        self._to_restore: Sequence[GuardedBuffer] = self._written  # before the next run
        self._turn = 0
        self.on_gpu = self._device.info.kind == "gpu"
        self._is_cold = call_mode.cache == "cold" if call_mode.cache else self.on_gpu
        self._call_mode = call_mode
        self.batch = 1

    def start_over(self) -> None:
        """Restore all outputs before the next run: what it leaves is then its own work."""
        self._to_restore = self._written

    def sample_ms(self, expected_ms: float = math.inf) -> float:
        """Device time of one run of the plan; the mean of a batch if runs are batched.

        If the clock seems to have jumped during a sample, ahead or back from about `expected_ms`, another one
        is taken. Raises ImpossibleTime if the time of the last one is negative.
        """
        for _ in range(MAX_SAMPLES_TAKEN):
            time_ms = self._sample_ms()
            if 0 <= time_ms <= CLOCK_JUMP * expected_ms:
                return time_ms
        if time_ms < 0:
            raise ImpossibleTime(f"the device reports a run time of {time_ms} ms")
        return time_ms

    def _sample_ms(self) -> float:
        self._put_back()
        if self._is_cold:
            self._device.flush_cache()
        return self._run(self.batch, warm_first=self.warms_up) / self.batch

    @property
    def warms_up(self) -> bool:
        """True if the runs of each sample follow the same warm-up runs.

        Restoring outputs displaces what the run before left in the caches, and the GPU is idle then.
        """
        return self.on_gpu and not self._is_cold and not self._restored

    def _run(self, repeats: int, warm_first: bool = False) -> float:
        launch = self._call_mode.launch
        graph = launch == "graph" if launch else None
        return self._buffers.run(self._program, repeats, graph=graph, warm_first=warm_first)

    def _put_back(self) -> None:
        """Restore arrays that runs change, and make every output wrong: no kernel may find its work done.

        Small scratch arrays are poisoned in every second turn: none may keep results.

        The clocks are set first: that may take longer than the flush, after which the run begins at once.
        """
        if self._settings:
            self._device.clocks.apply(self._settings)
        for guarded in self._to_restore:
            guarded.restore()
        self._to_restore = self._restored
        if self._turn % 2:
            for guarded in self._scratch:
                guarded.restore()
        for guarded in self._outputs:
            guarded.spoil(self._turn)
        self._turn += 1

    @property
    def start_ms(self) -> float:
        """Overhead in ms of a run that no other precedes."""
        return GPU_START_MS if self.on_gpu else CPU_START_MS

    def warm_up(self, count: int, expected_ms: float = math.inf) -> tuple[float, ...]:
        """Take at least `count` warm-up samples, on a CPU until times settle; returns them in ms.

        `expected_ms` is the time that a sample should take.
        """
        samples: list[float] = []
        while len(samples) < count or (
            not self.on_gpu and sum(samples) < SETTLING_MS and len(samples) < MAX_WARMUPS
        ):
            samples.append(self.sample_ms(expected_ms))
        return tuple(samples)

    def energy_j(self, run_ms: float, seconds: float) -> float | None:
        """Energy of one run in J, idle power included, from the device's counter; None if it has none.

        Runs repeat for `seconds`, without flushing caches. If arrays have to be restored, the energy of
        restoring is measured for as long and subtracted; one measurement serves the same arrays at the same
        clocks.
        """
        repeats = 1 if self._restored else max(1, min(1000, round(ENERGY_BATCH_MS / max(run_ms, 1e-3))))
        self._restore_and_run(1)  # gives the first restore something to do
        whole_j = self._each_j(lambda: self._restore_and_run(repeats), seconds)
        restore_j: float | None = 0.0
        if self._restored:
            measured_j, arrays = self._buffers.restore_j, tuple(guarded.array for guarded in self._restored)
            key = arrays, self._settings
            if key not in measured_j:
                measured_j[key] = self._each_j(self._restore_alone, seconds)
                self._restore_and_run(1)  # the caller checks what a run leaves
            restore_j = measured_j[key]
        if whole_j is None or restore_j is None:
            return None
        return max(whole_j - restore_j, ENERGY_RESOLUTION * whole_j) / repeats

    def _each_j(self, work: Callable[[], object], seconds: float) -> float | None:
        """Mean energy of one call of `work`, repeated for `seconds`; None if the device has no counter."""
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
        self._run(repeats)

    def _restore_alone(self) -> None:
        for guarded in self._restored:
            guarded.is_pristine = False
            guarded.restore()
            guarded.guards()  # waits, as a run does

    def choose_batch(self, run_ms: float, batch_ms: float, search_batch: int | None) -> None:
        """Set the number of runs per sample: the search's if it has one, else enough to fill `batch_ms`.

        Only the first run of a sample finds cold caches, so only times with equal batches are comparable.
        Plans are not batched if their arrays need a restore between runs, or if every call should find cold
        caches.
        """
        if not self._restored and run_ms > 0 and self._call_mode.cache != "cold":
            needed = min(100, math.ceil(batch_ms / run_ms))
            self.batch = bounded_batch(needed if search_batch is None else search_batch, run_ms)


def bounded_batch(batch: int, run_ms: float) -> int:
    """Limit a batch to the runs that fit in MAX_BATCH_MS."""
    return max(1, min(batch, int(MAX_BATCH_MS / run_ms)))
