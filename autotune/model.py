"""The records that every layer passes on: frozen, free of I/O, units in their names.

This module knows no device, no file and no clock, and imports the standard library only: the loader
that production code uses is built on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from statistics import median

Value = int | float | str | bool
Sizes = Mapping[str, int]
Grid = tuple[int, int, int]


class Config(Mapping[str, Value]):
    """One point of a space: parameter names to values, immutable and hashable."""

    __slots__ = ("_hash", "_values")

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)
        self._hash = hash(frozenset(self._values.items()))

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._values == other

    def __repr__(self) -> str:
        return f"Config({self._values!r})"

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self._values.items())

    @property
    def key(self) -> str:
        """Canonical text: equal for equal configurations, whatever the order of their names."""
        return json.dumps(self._values, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class DeviceInfo:
    """What a space may ask of a device (as `device.NAME`) and what a result must say of it."""

    backend: str
    name: str
    slug: str
    kind: str  # "gpu" or "cpu"
    vendor: str
    architecture: str
    compute_units: int
    warp_size: int
    max_threads_per_block: int
    shared_bytes_per_block: int
    registers_per_block: int | None
    memory_bytes: int
    memory_bandwidth_bytes_per_s: float | None
    cache_bytes: int
    has_shuffle: bool  # warp-level exchange and warp-level barrier
    driver: str
    runtime: str


@dataclass(frozen=True)
class Problem:
    """What is computed: sizes by name, the element type, and the seed of its random inputs."""

    sizes: Sizes
    dtype: str
    seed: int = 0


@dataclass(frozen=True)
class Parameter:
    """One tunable macro and the values it may take, in the order of the space file."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class ArgumentSpec:
    """One kernel argument as expressions: an array (role in, out, inout or scratch) or a scalar.

    `dtype` is a numpy name, or DTYPE for the problem's element type. `shape` is empty for a scalar; `value`
    is the scalar's expression, None for an array.
    """

    name: str
    dtype: str
    role: str
    shape: tuple[str, ...] = ()
    value: str | None = None


@dataclass(frozen=True)
class Argument:
    """One kernel argument with all its numbers: the shape of an array, or the value of a scalar."""

    name: str
    dtype: str
    role: str
    shape: tuple[int, ...] = ()
    value: int | float | None = None


@dataclass(frozen=True)
class LaunchSpec:
    """One step of a launch plan as expressions; `when` decides whether the step takes part."""

    entry: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    arguments: tuple[str, ...]
    shared_bytes: str = "0"
    when: str = "True"


@dataclass(frozen=True)
class Launch:
    """One kernel launch with all its numbers: blocks in the grid, threads in a block."""

    entry: str
    grid: Grid
    block: Grid
    shared_bytes: int
    arguments: tuple[str, ...]


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
    def low_ms(self) -> float:
        """Lower end of the interval the median is known to: see `interval_ms`."""
        return self.interval_ms[0]

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

    @property
    def relative_noise(self) -> float:
        """Median absolute deviation over the median: 0.01 is one percent."""
        middle = self.median_ms
        return median(abs(sample - middle) for sample in self.samples_ms) / middle if middle else 0.0


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


@dataclass(frozen=True)
class Provenance:
    """Where a cached result comes from: enough to repeat it and to notice that it is stale."""

    tuned_at: str  # ISO 8601, UTC
    autotune: str
    host: str
    driver: str
    runtime: str
    source_sha256: str
    space_sha256: str
    engine: str
    seed: int
    trials: int
    valid_configurations: int
    protocol: str


@dataclass(frozen=True)
class Entry:
    """One cached result: the best configuration of one kernel on one device for one problem."""

    sizes: Sizes
    dtype: str
    config: Config
    time_ms: float
    interval_ms: tuple[float, float]
    default_time_ms: float | None
    ties: tuple[Config, ...]  # configurations that the measurement cannot tell from the best
    provenance: Provenance


@dataclass(frozen=True)
class KernelRecord:
    """One cache file: what the loader needs of a kernel on one device, without reading any YAML."""

    kernel: str
    dtypes: tuple[str, ...]  # element types the kernel is written for; the first is the default
    parameters: tuple[Parameter, ...]
    constraints: tuple[str, ...]
    derived: Mapping[str, str]
    arguments: tuple[ArgumentSpec, ...]
    launch: tuple[LaunchSpec, ...]
    compiler_options: Mapping[str, Mapping[str, str]]  # by dialect: flag to expression
    default: Config
    entries: tuple[Entry, ...]


class Tier(Enum):
    """How closely a served configuration matches what was asked for; best first."""

    EXACT = "exact"
    NEAREST_SIZE = "nearest_size"
    DEFAULT = "default"


@dataclass(frozen=True)
class Match:
    """Why this configuration is served: tier, device and sizes it was tuned on, and a sentence."""

    tier: Tier
    source_device: str | None
    source_sizes: Sizes | None
    distance: float  # Euclidean distance of the sizes in log2 space; 0 for the same sizes
    detail: str
