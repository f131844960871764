"""The records of a search: what is tried, and how it ended. Frozen, free of I/O, units in their names.

What the loader serves is in `model`; this module is apart from it so that production code need not import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from statistics import median

from autotune.model import Config, Sizes, Value


@dataclass(frozen=True)
class Problem:
    """What is computed: sizes by name, the element type, and the seed of its random inputs."""

    sizes: Sizes
    dtype: str
    seed: int = 0


class Status(Enum):
    """How a trial ended."""

    OK = "ok"
    COMPILE_ERROR = "compile_error"
    COMPILE_TIMEOUT = "compile_timeout"
    LAUNCH_ERROR = "launch_error"
    WRONG_RESULT = "wrong_result"
    OUT_OF_BOUNDS = "out_of_bounds"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    PRUNED = "pruned"


class Objective(Enum):
    """What a search makes small."""

    TIME = "time"  # of one run, in ms
    ENERGY = "energy"  # of one run, in J
    EDP = "edp"  # energy times delay, in J s
    PARETO = "pareto"  # time and energy both: the best is the one with the least energy times delay


@dataclass(frozen=True)
class Failure:
    """Why something did not work: never OK, always with a reason."""

    status: Status
    detail: str
    is_doubtful: bool = False  # what ran before in the same process may have caused it


@dataclass(frozen=True)
class Binary:
    """A compiled kernel, with what the compiler says of its most demanding entry (None: it does not say)."""

    data: bytes
    sha256: str
    log: str
    compile_ms: float  # 0 for one that was kept from an earlier run
    registers: int | None = None  # per thread
    spill_bytes: int | None = None  # per thread, what registers had no room for
    shared_bytes: int | None = None  # per block, as the source declares it
    cached: bool = False  # kept from an earlier run


@dataclass(frozen=True)
class Verdict:
    """Outcome of the correctness checks: `failure` is None when every one of them held."""

    failure: Failure | None
    repeatable: bool  # a run leaves every inout argument as it found it: no restore is needed in between
    run_ms: float = 0.0  # device time of the run that was checked


@dataclass(frozen=True)
class Measurement:
    """Raw samples of one plan of launches; every statistic is derived from them."""

    samples_ms: tuple[float, ...]
    rule: str  # why sampling stopped: "steady", "samples", "time", "screened", "hopeless" or "finals"
    warmups_ms: tuple[float, ...] = ()
    batch: int = 1  # runs that one sample averages over
    energy_j: float | None = None  # of one run, where it was measured
    conditions: Mapping[str, Value] = field(default_factory=dict)  # clocks, throttling, other processes

    @property
    def median_ms(self) -> float:
        """Median of the samples."""
        return median(self.samples_ms)

    @property
    def alone_ms(self) -> float:
        """Time of one run by itself: the warm-up's where samples are of several runs, else the median."""
        return min(self.warmups_ms) if self.batch > 1 and self.warmups_ms else self.median_ms

    def score(self, objective: Objective) -> float | None:
        """What the objective makes small; None where it takes energy, and none was measured."""
        if objective is Objective.TIME or self.energy_j is None:
            return self.median_ms if objective is Objective.TIME else None
        return self.energy_j * (1.0 if objective is Objective.ENERGY else self.median_ms * 1e-3)

    @property
    def interval_ms(self) -> tuple[float, float]:
        """Distribution-free 95% interval of the median from order statistics; whole range under 6 samples.

        Source: Conover, Practical Nonparametric Statistics (1999), section 3.2: ranks n/2 -+ 0.98 sqrt(n).
        """
        ordered = sorted(self.samples_ms)
        count = len(ordered)
        reach = 0.98 * count**0.5
        low = max(0, int(count / 2 - reach))
        high = min(count - 1, int(count / 2 + reach))
        return ordered[low], ordered[high]


@dataclass(frozen=True)
class Trial:
    """What is known of one configuration: its status, and its measurement if it was timed."""

    config: Config
    key: str  # content key: source, macros, flags, launches, arguments, environment
    status: Status
    detail: str = ""
    measurement: Measurement | None = None
    compile_ms: float = 0.0
    cost_s: float = 0.0  # wall time that finding this out took
    binary_sha256: str = ""
    binary_cached: bool = False  # kept from an earlier run instead of compiled
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    objective: Objective = Objective.TIME

    @property
    def score(self) -> float | None:
        """What the search makes small, in the objective's unit; None unless the status is OK."""
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
class Budget:
    """How much a search may spend; None means no limit of that kind."""

    trials: int | None = None
    seconds: float | None = None
