"""The records that every layer passes on: frozen, free of I/O, units in their names.

This module knows no device, no file and no clock, and imports the standard library only: the loader
that production code uses is built on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from math import hypot, inf, log2

Value = int | float | str | bool
Sizes = Mapping[str, int]
Grid = tuple[int, int, int]
Front = tuple[tuple["Config", float, float], ...]  # with times in ms and energies in J, fastest first
ProblemKey = tuple[str, tuple[tuple[str, int], ...], str]  # element type, sizes by name, name of the data
Measured = tuple[tuple["Config", float], ...]  # configurations with their times in ms, fastest first

NOISY = 0.1  # a result with more noise than this says so
ADOPTION = "adopt"  # the engine that chooses a few runs by what other devices and sizes know


def distance(one: Sizes, other: Sizes) -> float:
    """Euclidean distance of two sets of sizes in log2 space: every dimension counts, not the volume."""
    return hypot(*(log2(one[name]) - log2(other[name]) for name in one))


def size_text(sizes: Sizes) -> str:
    """Sizes as a reader writes them: `m=64, n=128`."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items()) or "no sizes"


def name_words(name: str) -> list[str]:
    """The words of a device's name in lower case, without (R), (TM) and (C)."""
    plain = name.lower()
    for mark in ("(r)", "(tm)", "(c)"):
        plain = plain.replace(mark, " ")
    return "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in plain).split()


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
    limits: str = field(
        default="", compare=False
    )  # set from outside: cores, power, clocks; no space reads it

    @property
    def identity(self) -> dict[str, str]:
        """What may differ between two devices of one name, and makes their times differ.

        A GPU is what its driver shows: a part of one (MIG, MPS) has fewer units and less memory.
        The memory of a CPU is left out: that of a virtual machine may grow while it is used.
        """
        found = {"units": str(self.compute_units), "limits": self.limits}
        return found | ({"memory_bytes": str(self.memory_bytes)} if self.kind == "gpu" else {})


@dataclass(frozen=True)
class Parameter:
    """One tunable macro and the values it may take, in the order of the space file."""

    name: str
    values: tuple[Value, ...]

    def takes(self, value: Value) -> bool:
        """Whether a value is listed, as the type that it has: true is not 1."""
        return value in self.values and any(type(value) is type(one) and value == one for one in self.values)


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
    compiler: str = ""  # with its version; empty: not noted

    @property
    def is_probe(self) -> bool:
        """Whether it is the best of a few runs only, and no search's."""
        return self.engine == ADOPTION

    @property
    def origin(self) -> str:
        """How the result came to be, as a sentence begins."""
        return f"probed with {self.trials} runs" if self.is_probe else "tuned"


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
    measured: Measured = ()  # others that the search verified and timed
    registers: int | None = None  # a thread of the best, where the compiler says
    front: Front = ()  # where energy counted: those that none was faster and thriftier than
    work_bytes: float | None = None  # that the problem moves, as far as the space says
    work_flops: float | None = None
    uncompared: tuple[str, ...] = ()  # outputs that it writes and the reference does not return
    noise: float | None = None  # of the last round: by what two entries of one binary differed
    rivals: tuple[Entry, ...] = ()  # for the same problem, from other machines: `autotune merge` keeps them
    data: str = ""  # name of the content of the inputs; empty: the space has one content only
    data_sha256: str = ""  # of that content, where it comes from a file or from `inputs`

    @property
    def problem(self) -> ProblemKey:
        """What it is a result for: equal for equal problems, whatever the order of their sizes."""
        return self.dtype, tuple(sorted(self.sizes.items())), self.data

    @property
    def caveat(self) -> str:
        """What makes it doubtful, as a sentence ends; empty where nothing is known to."""
        noisy = f"; measured with {self.noise:.0%} noise" if (self.noise or 0.0) > NOISY else ""
        names = ", ".join(self.uncompared)
        return f"{noisy}; not compared with a reference: {names}" if names else noisy

    def registers_of(self, config: Config) -> int | None:
        """Registers of a thread in a configuration; None: not known."""
        return self.registers if config == self.config else None

    @cached_property
    def relative_times(self) -> Mapping[Config, float]:
        """Times of all known configurations over the best one's, at least 1.

        A time of the search may lie below that of the last round, which is the one that counts.
        """
        best_ms = self.time_ms if self.time_ms > 0 else inf
        return {config: max(1.0, time_ms / best_ms) for config, time_ms in self.measured} | {self.config: 1.0}


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
    compiler: str = ""  # that CUDA devices need for it, nvcc; empty: NVRTC

    @property
    def parameter_names(self) -> frozenset[str]:
        """Which parameters the kernel has; one of the same name with others is another kernel."""
        return frozenset(parameter.name for parameter in self.parameters)

    @property
    def tuned_at(self) -> str:
        """When the newest result was found, rivals included: ISO 8601 in UTC, so texts compare as times."""
        results = [result for entry in self.entries for result in (entry, *entry.rivals)]
        return max((result.provenance.tuned_at for result in results), default="")


class Tier(Enum):
    """How closely a served configuration matches what was asked for; best first."""

    EXACT = "exact"
    NEAREST_SIZE = "nearest_size"
    SAME_ARCHITECTURE = "same_architecture"
    SAME_VENDOR = "same_vendor"
    PORTABLE = "portable"
    DEFAULT = "default"

    def reaches(self, least: Tier) -> bool:
        """Whether this tier is at least as close a match as another."""
        tiers = list(Tier)
        return tiers.index(self) <= tiers.index(least)


@dataclass(frozen=True)
class Match:
    """Why this configuration is served: tier, device and sizes it was tuned on, and a sentence."""

    tier: Tier
    source_device: str | None
    source_sizes: Sizes | None
    distance: float  # Euclidean distance of the sizes in log2 space; 0 for the same sizes
    detail: str
