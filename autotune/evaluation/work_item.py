"""What is sent to the device process and back: a configuration with its workloads, and its outcome."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

from autotune.core.trials import USUAL, Binary, CallMode, Failure, Measurement
from autotune.problem.workload import Workload, identity_of


@dataclass(frozen=True)
class MeasurementPolicy:
    """The rules for timing a configuration, and for stopping early.

    - Hopeless: each of `hopeless_runs` runs took more than `hopeless_factor` times as long as a run of the
      incumbent; the verification counts as the first run. The first run is enough under three conditions:
      - it took more than `noise_factor` times as long;
      - it took more than `gpu_noise_ms` or `cpu_noise_ms`: the system may have held up a shorter run;
      - it took at most 1,000 times as long: the clock may have jumped ahead during a longer run.
    - Screened: after `warmups` runs, the fastest of `screen` samples takes more than `screen_factor` times
      the incumbent's median.
    - Beaten: the confidence interval of the median lies above `race_factor` times the incumbent's median.
    - Steady: the interval is narrower than `precision` of the median.
    - Otherwise sampling ends after `samples` samples or `seconds`.

    Before a configuration is given up, the incumbent is timed next to it, and the slower of its two times
    counts: a slow machine slows both. If the first configuration of a search takes less than `batch_ms`, each
    sample of the search repeats the run, to stay well above the timer's resolution. If energy is measured,
    runs of `energy_s` in all follow, except for hopeless configurations.
    """

    hopeless_factor: float = 2.5
    hopeless_runs: int = 2
    noise_factor: float = 4.0
    gpu_noise_ms: float = 0.5
    cpu_noise_ms: float = 20.0
    warmups: int = 1
    screen: int = 3
    screen_factor: float = 1.25
    race_factor: float = 1.02
    samples: int = 30
    precision: float = 0.01
    seconds: float = 0.3
    batch_ms: float = 0.05
    energy_s: float = 0.0
    call_mode: CallMode = USUAL

    @property
    def energy_limit_s(self) -> float:
        """Extra time limit for measuring energy: restores may take as long as the runs."""
        return 2 * self.energy_s

    def __str__(self) -> str:
        return (
            f"one run if it takes {self.noise_factor:g}x the best and {self.gpu_noise_ms:g} ms "
            f"({self.cpu_noise_ms:g} ms on a CPU), {self.hopeless_runs} if all take "
            f"{self.hopeless_factor:g}x, else {self.warmups} warm-up and {self.screen} samples to screen at "
            f"{self.screen_factor:g}x the best, then until beaten by "
            f"{self.race_factor - 1:.0%} or known to {self.precision:.0%}, {self.samples} samples or "
            f"{self.seconds:g} s; before a configuration is given up, the best is timed again"
        ) + (f"; {self.call_mode}" if str(self.call_mode) else "")


@dataclass(frozen=True)
class Incumbent:
    """The best configuration so far: its measurement, and all that is needed to run it next to another."""

    measurement: Measurement
    binary: Binary | None  # None: the measurement is from the journal
    workload: Workload


@dataclass(frozen=True)
class WorkItem:
    """One configuration: verify it on `verify_workloads`, then verify and time it on `workload`."""

    binary: Binary
    verify_workloads: tuple[Workload, ...]
    workload: Workload
    policy: MeasurementPolicy
    incumbent: Incumbent | None
    batch: int | None  # runs per sample, the same in a whole search; None: nothing has been timed yet
    floor_ms: float  # the time to move the work's bytes at the memory's bandwidth: no correct run is faster
    is_alone: bool = False  # True: run again without the incumbent, which may have caused the failure

    @cached_property
    def verify_key(self) -> tuple[str, str]:
        """Items with the same key verify the same binary on the same workloads."""
        return self.binary.sha256, identity_of(self.verify_workloads)

    @property
    def runs_incumbent(self) -> bool:
        """True if the incumbent runs as well."""
        return not self.is_alone and self.incumbent is not None and self.incumbent.binary is not None


@dataclass(frozen=True)
class ItemResult:
    """The outcome of a work item, the device that ran it, and the time it took, as `Laps` counts it."""

    outcome: Measurement | Failure
    device: str
    cost_s: float


class Laps:
    """Counts what trials cost: the time since the last trial ended, waits of the device included."""

    def __init__(self) -> None:
        """Begin the first lap."""
        self.restart()

    def next_s(self) -> float:
        """The time of the lap that ends now; the next one begins."""
        began_s = self._began_s
        self.restart()
        return self._began_s - began_s

    def restart(self) -> None:
        """Begin the next lap now: the time since the last one counts for no trial."""
        self._began_s = time.perf_counter()
