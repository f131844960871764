"""What travels to the worker and back: one configuration on concrete problems, with every number in it.

A job is free of expressions and of YAML, so the worker only runs, checks and times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from autotune.model import Launch, Value
from autotune.trials import Binary, Failure, Measurement, Problem


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
class Case:
    """One problem a configuration runs on, with its launches for that problem."""

    problem: Problem
    arrays: tuple[Array, ...]
    scalars: tuple[Scalar, ...]
    launches: tuple[Launch, ...]
    rtol: float
    atol: float

    @cached_property
    def data_key(self) -> str:
        """Inputs and expected results depend on the problem and on every array but scratch."""
        problem = self.problem
        arrays = tuple(array for array in self.arrays if array.role != "scratch")
        return repr((sorted(problem.sizes.items()), problem.dtype, problem.seed, arrays))


@dataclass(frozen=True)
class Protocol:
    """How a configuration is timed.

    One whose verification took `hopeless_factor` times as long as a run of the incumbent by itself is not
    timed again: that run is its sample. After `warmups` runs, `screen` samples decide whether another can
    still win: it stops there if its fastest sample is `screen_factor` times the incumbent's median. The rest
    race on until they are beaten (all of the median's interval is above `race_factor` times the incumbent's
    median) or known (the interval is narrower than `precision` of the median), or `samples` or `seconds` are
    used up. Where the first configuration of a search takes less than `batch_ms`, runs are repeated within
    each sample, so that one stays well above the timer's resolution. Where energy counts, runs of `energy_s`
    in all follow, unless the configuration is hopeless.
    """

    hopeless_factor: float = 2.5
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
            f"one run if it takes {self.hopeless_factor:g}x the best, else {self.warmups} warm-up and "
            f"{self.screen} samples to screen at {self.screen_factor:g}x the best, then until beaten by "
            f"{self.race_factor - 1:.0%} or known to {self.precision:.0%}, {self.samples} samples or "
            f"{self.seconds:g} s"
        )


@dataclass(frozen=True)
class Job:
    """One configuration to verify on `checks`, then to verify and time on `case`."""

    binary: Binary
    checks: tuple[Case, ...]
    case: Case
    protocol: Protocol
    incumbent: Measurement | None  # of the best configuration so far
    batch: int | None  # runs in a sample, the same for all of a search; None: nothing has been timed yet
    floor_ms: float  # no honest run is faster: the work's bytes at the memory's bandwidth


@dataclass(frozen=True)
class Outcome:
    """What became of a job: a failure, or a measurement."""

    failure: Failure | None = None
    measurement: Measurement | None = None
