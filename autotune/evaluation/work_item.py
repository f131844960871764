"""What travels to the worker and back: one configuration on concrete problems, with every number in it.

A job is free of expressions and of YAML, so the worker only runs, checks and times.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from autotune.core.records import Launch, Value
from autotune.core.trials import Binary, Failure, Measurement, Problem


@dataclass(frozen=True)
class Array:
    """One array argument; `fill` is a kind and its numbers, None for `out` and `scratch`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str  # "in", "out", "inout" or "scratch"
    fill: tuple[Value, ...] | None


@dataclass(frozen=True)
class Scalar:
    """One value argument."""

    name: str
    dtype: str
    value: int | float


@dataclass(frozen=True)
class ProblemInstance:
    """One problem a configuration runs on, with its launches for that problem."""

    problem: Problem
    arrays: tuple[Array, ...]
    scalars: tuple[Scalar, ...]
    launches: tuple[Launch, ...]
    rtol: float
    atol: float

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Version 1 of what a trial's key says of a case; its words stay when fields get other names."""
        return {
            "problem": [sorted(self.problem.sizes.items()), self.problem.dtype, self.problem.seed],
            "arrays": [
                {"name": a.name, "dtype": a.dtype, "shape": a.shape, "role": a.role, "fill": a.fill}
                for a in self.arrays
            ],
            "scalars": [{"name": s.name, "dtype": s.dtype, "value": s.value} for s in self.scalars],
            "launches": [
                {
                    "entry": step.entry,
                    "grid": step.grid,
                    "block": step.block,
                    "shared_bytes": step.shared_bytes,
                    "arguments": step.arguments,
                }
                for step in self.launches
            ],
            "rtol": self.rtol,
            "atol": self.atol,
        }

    @cached_property
    def data_key(self) -> str:
        """Inputs and expected results depend on the problem and on every array but scratch."""
        arrays = [array for array in self.identity["arrays"] if array["role"] != "scratch"]
        return json.dumps([self.identity["problem"], arrays])


@dataclass(frozen=True)
class MeasurementPolicy:
    """How a configuration is timed.

    One whose verification took `hopeless_factor` times as long as a run of the incumbent by itself is run
    again, `hopeless_runs` times in all, and given up if every run took so long; beyond `noise_factor` one
    run is enough. After `warmups` runs, `screen` samples decide whether another can still win: it stops there
    if its fastest sample is `screen_factor` times the incumbent's median. The rest race on until they are
    beaten (all of the median's interval is above `race_factor` times the incumbent's median) or known (the
    interval is narrower than `precision` of the median), or `samples` or `seconds` are used up. Before one is
    given up the incumbent is run beside it, and the slower of its two times counts: whatever slows the
    machine down slows both. Where the first configuration of a search takes less than `batch_ms`, runs are
    repeated within each sample, so that one stays well above the timer's resolution. Where energy counts,
    runs of `energy_s` in all follow, unless the configuration is hopeless.
    """

    hopeless_factor: float = 2.5
    hopeless_runs: int = 2
    noise_factor: float = 4.0
    warmups: int = 1
    screen: int = 3
    screen_factor: float = 1.25
    race_factor: float = 1.02
    samples: int = 30
    precision: float = 0.01
    seconds: float = 0.3
    batch_ms: float = 0.05
    energy_s: float = 0.0

    @property
    def energy_limit_s(self) -> float:
        """By how much energy raises the time limit of what measures it: restores may take as long again."""
        return 2 * self.energy_s

    def __str__(self) -> str:
        return (
            f"one run if it takes {self.noise_factor:g}x the best, {self.hopeless_runs} if all take "
            f"{self.hopeless_factor:g}x, else {self.warmups} warm-up and {self.screen} samples to screen at "
            f"{self.screen_factor:g}x the best, then until beaten by {self.race_factor - 1:.0%} or known to "
            f"{self.precision:.0%}, {self.samples} samples or {self.seconds:g} s; the best is timed beside "
            "what is given up"
        )


@dataclass(frozen=True)
class Incumbent:
    """The best configuration so far: its measurement, and what it takes to run it beside another."""

    measurement: Measurement
    binary: Binary | None  # None: not at hand, for the measurement is from the journal
    case: ProblemInstance


@dataclass(frozen=True)
class WorkItem:
    """One configuration to verify on `checks`, then to verify and time on `case`."""

    binary: Binary
    checks: tuple[ProblemInstance, ...]
    case: ProblemInstance
    protocol: MeasurementPolicy
    incumbent: Incumbent | None
    batch: int | None  # runs in a sample, the same for all of a search; None: nothing has been timed yet
    floor_ms: float  # no honest run is faster: the work's bytes at the memory's bandwidth

    def alone(self) -> WorkItem | None:
        """The same without a run of the incumbent beside it; None where there is none anyway."""
        if self.incumbent is None or self.incumbent.binary is None:
            return None
        return replace(self, incumbent=replace(self.incumbent, binary=None))


@dataclass(frozen=True)
class Outcome:
    """What became of a job: a failure, or a measurement."""

    failure: Failure | None = None
    measurement: Measurement | None = None
