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


@dataclass(frozen=True)
class Failure:
    """Why something did not work: never OK, always with a reason."""

    status: Status
    detail: str


@dataclass(frozen=True)
class Binary:
    """A compiled kernel, with what the compiler says of it (None: it does not say)."""

    data: bytes
    sha256: str
    log: str
    compile_ms: float
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None


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
    conditions: Mapping[str, Value] = field(default_factory=dict)  # clocks, throttling, other processes

    @property
    def median_ms(self) -> float:
        """Median of the samples."""
        return median(self.samples_ms)

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
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None

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
