"""The frozen records of a search: trials, measurements and failures, with units in their names.

They are separate from `records`: production code need not import them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import cache

from autotune.core.records import Config, Front, Sizes, Value, distance
from autotune.core.text import shortened
from autotune.errors import Blame


@dataclass(frozen=True)
class Problem:
    """One problem of a kernel: sizes by name, the element type, and the seed of the random inputs.

    `data` names the content of the inputs if a space has several; empty if it has one. `variant` names one
    more kind of content, on which kernels are verified and not timed.
    """

    sizes: Sizes
    dtype: str
    seed: int = 0
    data: str = ""
    variant: str = ""


MAX_SEARCH_S = 86_400.0  # that a user can give one search
_ONE_IN = 20  # an interval of 95% misses the median in one of so many cases
OTHER_DTYPE = 0.5  # the distance to a problem of another element type, in doublings of a size


def problem_distance(problem: Problem, other: Problem) -> float:
    """The distance of two problems of a kernel, in doublings of a size."""
    return distance(problem.sizes, other.sizes) + OTHER_DTYPE * (problem.dtype != other.dtype)


CACHES = ("cold", "warm")
LAUNCHES = ("graph", "eager")


@dataclass(frozen=True)
class CallMode:
    """The way that a kernel is called, which timing imitates; the device chooses where a field is empty.

    Attributes:
        cache: "cold" if caches hold other data before every run, "warm" if they hold the previous run's.
        launch: "graph" if runs are replayed as CUDA graphs, "eager" if launches are queued one by one.
    """

    cache: str = ""
    launch: str = ""

    def __str__(self) -> str:
        words = (f"{self.cache} cache" if self.cache else "", LAUNCH_WORDS.get(self.launch, ""))
        return ", ".join(filter(None, words))


USUAL = CallMode()
LAUNCH_WORDS = {"graph": "as a CUDA graph", "eager": "launch by launch"}


class Status(Enum):
    """The end of a trial."""

    OK = "ok"
    COMPILE_ERROR = "compile_error"
    COMPILE_TIMEOUT = "compile_timeout"
    LAUNCH_ERROR = "launch_error"
    MEASUREMENT_ERROR = "measurement_error"
    WRONG_RESULT = "wrong_result"
    OUT_OF_BOUNDS = "out_of_bounds"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    MISSES_REQUIREMENT = "misses_requirement"  # of the space on what is measured
    INVALID = "pruned"  # outside the space; the word is older journals'


WRONG = (Status.WRONG_RESULT, Status.OUT_OF_BOUNDS)  # the configuration is wrong on any machine


class Objective(Enum):
    """The quantity that a search minimises."""

    TIME = "time"  # of one run, in ms
    ENERGY = "energy"  # of one run, in J
    EDP = "edp"  # energy times delay, in J s
    PARETO = "pareto"  # time and energy; the best configuration has the least energy times delay
    OWN = "own"  # the user's expression or function


@dataclass(frozen=True)
class ArrayFault:
    """What a check of an array found, for advice; the reason of the failure says it in words."""

    array: str
    sizes: Sizes  # of the problem that ran
    element: str = ""  # the first that differs from the reference, such as `y[3, 7]`
    found: str = ""  # its value; empty if it was never written
    expected: str = ""
    is_unwritten: bool = False  # the array or its wrong elements
    is_end: bool = False  # the last elements are wrong, and no others
    allowance: str = ""  # the `verify` that allows the error, if it may be rounding
    holder: str = ""  # another array that has what is expected of this one


@dataclass(frozen=True)
class Failure:
    """The failure of a step: a status other than OK, and a reason, which is shortened if it is very long."""

    status: Status
    detail: str
    blame: Blame = Blame.CONFIGURATION
    fault: ArrayFault | None = None  # of a check of arrays

    def __post_init__(self) -> None:
        vars(self)["detail"] = shortened(self.detail)

    def __str__(self) -> str:
        return f"{self.status.value}: {self.detail}"

    @property
    def by_machine(self) -> bool:
        """True if the machine may be the cause: then it says nothing about the configuration."""
        return self.blame is Blame.MACHINE


@dataclass(frozen=True)
class Binary:
    """A compiled kernel, with the resources of its most demanding entry (None if not reported).

    Binaries with the same `sha256` do the same: it hashes `data`, or the part of it that runs. A very long
    log is shortened.
    """

    data: bytes
    sha256: str
    log: str
    compile_ms: float  # 0 if cached
    registers: int | None = None  # per thread
    spill_bytes: int | None = None  # per thread
    shared_bytes: int | None = None  # per block, static
    cached: bool = False  # from the binary cache
    symbols: Mapping[str, str] = field(default_factory=dict, hash=False)  # C++ names to the binary's own

    def __post_init__(self) -> None:
        vars(self)["log"] = shortened(self.log)

    def symbol(self, name: str) -> str:
        """The binary's own name for a kernel or variable; C code keeps the source's name."""
        return self.symbols.get(name, name)


class Rule(StrEnum):
    """The reason why sampling stopped, or the origin of samples taken elsewhere; see `MeasurementPolicy`."""

    STEADY = "steady"  # the median is known precisely enough
    SAMPLES = "samples"  # the maximum number of samples
    TIME = "time"  # the maximum time
    BEATEN = "beaten"  # the interval lies above the incumbent's time
    SCREENED = "screened"  # the first samples are all far slower than the incumbent
    HOPELESS = "hopeless"  # the first run, or two, were far slower
    LAST_ROUND = "finals"  # a sample of the last round; the word is older journals'
    IMPORTED = "imported"  # from another tool's results


@dataclass(frozen=True)
class Measurement:
    """The samples of one configuration, from which its time and interval are derived."""

    samples_ms: tuple[float, ...]
    rule: Rule
    warmups_ms: tuple[float, ...] = ()
    batch: int = 1  # runs that each sample averages
    energy_j: float | None = None  # of one run, if measured
    conditions: Mapping[str, Value] = field(default_factory=dict)  # clocks, throttling, other processes
    control_ratio: float | None = None  # the incumbent's time next to this one, over its earlier time
    chosen_from: int = 1  # number of finalists that a winner was chosen from; widens its interval
    noise: float | None = None  # relative difference of the times of a finalist that was timed as two
    value: float | None = None  # of the user's own objective; not journaled

    @property
    def median_ms(self) -> float:
        """Median of the samples."""
        from statistics import median  # imports fractions and decimals, which loading a kernel does not need

        return median(self.samples_ms)

    @property
    def alone_ms(self) -> float:
        """Time of a single run: the fastest warm-up if samples average several runs, else the median."""
        return min(self.warmups_ms) if self.batch > 1 and self.warmups_ms else self.median_ms

    def score(self, objective: Objective) -> float | None:
        """The value of the objective; None if it needs an energy and none was measured."""
        if objective is Objective.OWN:
            return self.value
        if objective is Objective.TIME:
            return self.median_ms
        if self.energy_j is None:
            return None
        return self.energy_j * (1.0 if objective is Objective.ENERGY else self.median_ms * 1e-3)

    @property
    def interval_ms(self) -> tuple[float, float]:
        """The 95% interval of the median, corrected for choosing the fastest finalist."""
        return median_interval(self.samples_ms, self.chosen_from)


def fewest_samples(chosen_from: int = 1) -> int:
    """The fewest samples of which `median_interval` reaches 95%: all lie on one side in 2 of 2^n cases."""
    return math.ceil(1 + math.log2(_ONE_IN * chosen_from))


def median_interval(samples: Sequence[float], chosen_from: int = 1) -> tuple[float, float]:
    """The 95% interval of the median, between two samples: it assumes no distribution.

    Of fewer than `fewest_samples` it is the whole range, and below 95%.

    Args:
        samples: Independent samples.
        chosen_from: Number of medians that this one was chosen from; the interval is widened until all of
            theirs hold at once (Bonferroni).
    """
    ordered = sorted(samples)
    left_out = _left_out(len(ordered), chosen_from)
    return ordered[left_out], ordered[-1 - left_out]


@cache
def _left_out(count: int, chosen_from: int) -> int:
    """The number of samples at each end that are outside the interval.

    Each sample is as likely to be below the median as above it, so the number below has a binomial
    distribution. The interval misses it if at most `left_out` samples are below the median, or above: in at
    most 5% of the cases (Conover, Practical Nonparametric Statistics, 1999, section 3.2).
    """
    missed = 0
    for left_out in range(count):
        missed += math.comb(count, left_out)  # cases with at most `left_out` samples below the median
        if 2 * missed * chosen_from * _ONE_IN > 2**count:
            return max(0, left_out - 1)
    return 0


def ratio_interval(rival: Measurement, winner: Measurement) -> tuple[float, float]:
    """The 95% interval of a rival's time over the winner's, by the ratios of both times in each round.

    What slows a machine down for a round slows both, so the ratio is steadier than either time. The method is
    that of `median_interval`, widened for the winner's choice.

    Args:
        rival: Measured in turns with the winner; rounds that only one of them has count for nothing.
        winner: The divisor.
    """
    ratios = [theirs / ours for theirs, ours in zip(rival.samples_ms, winner.samples_ms, strict=False)]
    return median_interval(ratios, winner.chosen_from)


@dataclass(frozen=True)
class Trial:
    """The outcome of one configuration: its failure, or its measurement if it was timed."""

    config: Config
    key: str  # content key: source, macros, flags, launches, arguments, environment
    failure: Failure | None = None
    note: str = ""  # of one that has not failed; it is shortened if it is very long
    measurement: Measurement | None = None
    compile_ms: float = 0.0
    cost_s: float = 0.0  # wall time that the trial took
    binary_sha256: str = ""
    binary_cached: bool = False  # from the binary cache
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    failed_last_round: bool = False
    objective: Objective = Objective.TIME
    device: str = ""  # the one of several devices that measured it

    def __post_init__(self) -> None:
        vars(self)["note"] = shortened(self.note)

    def __repr__(self) -> str:
        ending = self.status.value if self.time_ms is None else f"{self.time_ms:.4g} ms"
        return f"Trial({self.config}: {ending})"

    @property
    def status(self) -> Status:
        """The end of the trial."""
        return Status.OK if self.failure is None else self.failure.status

    @property
    def detail(self) -> str:
        """The reason of the failure, or the note."""
        return self.note if self.failure is None else self.failure.detail

    @property
    def by_machine(self) -> bool:
        """True if the machine may have caused the failure, so the next search tries again."""
        return self.failure is not None and self.failure.by_machine

    @property
    def score(self) -> float | None:
        """The value of the objective, in its unit; None unless the status is OK."""
        if self.status is Status.OK and self.measurement is not None:
            return self.measurement.score(self.objective)
        return None

    @property
    def time_ms(self) -> float | None:
        """Median time; None unless the status is OK."""
        if self.status is Status.OK and self.measurement is not None:
            return self.measurement.median_ms
        return None


@dataclass(frozen=True)
class DeviceScale:
    """The time of one of several devices relative to the others, with the 95% interval."""

    scale: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Budget:
    """The limits of a search; None means no limit."""

    trials: int | None = None
    seconds: float | None = None


def pareto_front(trials: Iterable[Trial]) -> Front:
    """The trials that no other beats in both time and energy of a run, fastest first."""
    measured = [
        (trial.config, trial.time_ms, trial.measurement.energy_j)
        for trial in trials
        if trial.time_ms is not None and trial.measurement and trial.measurement.energy_j is not None
    ]
    front: list[tuple[Config, float, float]] = []
    for row in sorted(measured, key=lambda row: (row[1], row[2])):
        if not front or row[2] < front[-1][2]:
            front.append(row)
    return tuple(front)
