"""The frozen records that all packages share, with units in their names.

Standard library only: production code that looks up results imports this module.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cached_property
from math import hypot, inf, log2, prod

from autotune.core.frozen import dataclass, field

Value = int | float | str | bool
Sizes = Mapping[str, int]
# A number, or the parts of a complex number or a structure; a pointer has the name of an array or view.
ScalarValue = int | float | tuple[int | float | str, ...]
Grid = tuple[int, int, int]
Front = tuple[tuple["Config", float, float], ...]  # configuration, time in ms, energy in J; fastest first
ProblemKey = tuple[str, tuple[tuple[str, int], ...], str]  # element type, sizes by name, name of the data
Measured = tuple[tuple["Config", float], ...]  # configuration, time in ms; fastest first

NOISY = 0.1  # results with more noise than this carry a warning
ADOPTION = "adopt"  # the engine that tries a few configurations known from other devices or sizes


def distance(sizes: Sizes, other: Sizes) -> float:
    """Euclidean distance of two sets of sizes in log2 space."""
    return hypot(*(log2(sizes[name]) - log2(other[name]) for name in sizes))


class Config(Mapping[str, Value]):
    """One point of a space: parameter names to values, immutable and hashable."""

    __slots__ = ("_hash", "_key", "_values")

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)
        self._hash = hash(frozenset(self._values.items()))
        self._key = ""

    def __getitem__(self, name: str) -> Value:
        try:
            return self._values[name]
        except KeyError:
            from autotune.core.text import hint  # only for the message

            alike = [parameter for parameter in self._values if str(name) in parameter]
            mend = f"; did you mean {' or '.join(alike)}?" if alike else hint(str(name), self._values)
            raise KeyError(f"no parameter {name!r}{mend}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._values

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

    def in_order(self, names: Iterable[str]) -> Config:
        """The same configuration with its names in a given order; unnamed ones come last."""
        leading = {name: self._values[name] for name in names if name in self._values}
        ordered = Config.__new__(Config)
        ordered._values, ordered._hash, ordered._key = leading | self._values, self._hash, self._key
        return ordered

    @property
    def key(self) -> str:
        """Canonical text, independent of the order of the names."""
        if not self._key:
            self._key = json.dumps(self._values, sort_keys=True, separators=(",", ":"))
        return self._key


@dataclass(frozen=True)
class DeviceInfo:
    """The properties of a device: read by spaces as `device.NAME`, and stored with results."""

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
    limits: str = field(default="", compare=False)  # limits set by an administrator: cores, power, clocks

    @property
    def identity(self) -> dict[str, str]:
        """The properties that affect times and may differ between two devices of the same name.

        A part of a GPU (MIG, MPS) has fewer units and less memory. A CPU's memory is left out, because a
        virtual machine's may grow while it is used.
        """
        properties = {"units": str(self.compute_units), "limits": self.limits}
        return properties | ({"memory_bytes": str(self.memory_bytes)} if self.kind == "gpu" else {})


@dataclass(frozen=True)
class Parameter:
    """One tunable macro and the values it may take, in the order of the space file."""

    name: str
    values: tuple[Value, ...]

    def takes(self, value: Value) -> bool:
        """True if a value is listed with the same type: True is not 1."""
        return any(type(value) is type(listed) and value == listed for listed in self.values)


@dataclass(frozen=True)
class ArgumentSpec:
    """One kernel argument as expressions: an array, a scalar or a view.

    The role `local` is memory of a block in OpenCL. `dtype` is one of C_TYPES, a structure (see
    `core.c_types`), or DTYPE for the problem's element type. `shape` is empty for a scalar; `value` is the
    scalar's expression, None for an array. `symbol` is a variable of the source: the array is copied to it
    before a launch, and not passed as an argument. A view is a pointer into the array `of`, `offset` elements
    of its own type from the start.
    """

    name: str
    dtype: str
    role: str
    shape: tuple[str, ...] = ()
    value: str | None = None
    symbol: str = ""
    of: str = ""
    offset: str = ""


@dataclass(frozen=True)
class Argument:
    """One kernel argument for one problem: an array with its shape, a scalar with its value, or a view."""

    name: str
    dtype: str
    role: str
    shape: tuple[int, ...] = ()
    value: ScalarValue | None = None
    symbol: str = ""
    of: str = ""
    offset_bytes: int = 0


@dataclass(frozen=True)
class CallSpec:
    """Arrays that a caller passes and receives; the caller does not see the others.

    Before every run, an array in `copies` starts as a copy of the input named there. Every element of an
    array in `kept` starts as the number given there, and every run leaves it so.
    """

    inputs: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    copies: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True)
class LaunchSpec:
    """One step of a launch plan as expressions; it is skipped unless `when` is true.

    It runs `repeat` times, every second time with the two arrays of `swap` exchanged. With a `result`, which
    is one of these, the first time is such that this one holds what the last time writes: both begin alike,
    and as written a run reads the first one and writes the second. A Triton kernel is compiled for the
    values of the names in `constants`; a name with an expression, `NAME=EXPRESSION`, has that value in this
    launch only. The other fields are as in `Launch`; fields that were not given are empty.
    """

    entry: str
    grid: tuple[str, ...]
    block: tuple[str, ...]
    arguments: tuple[str, ...]
    shared_bytes: str = "0"
    when: str = "True"
    repeat: str = ""
    swap: tuple[str, ...] = ()
    result: str = ""
    cooperative: str = ""
    cluster: tuple[str, ...] = ()
    programmatic: str = ""
    constants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One kernel launch: `grid` in blocks, `block` in threads.

    The blocks of a `cooperative` launch are all resident at once; the blocks of a `cluster` share a
    group of multiprocessors. A `programmatic` launch may begin before the previous one has ended.
    """

    entry: str
    grid: Grid
    block: Grid
    shared_bytes: int
    arguments: tuple[str, ...]
    cooperative: bool = False
    cluster: Grid = (1, 1, 1)
    programmatic: bool = False

    @property
    def threads(self) -> int:
        """The threads of all blocks."""
        return prod(self.grid) * prod(self.block)

    @property
    def global_size(self) -> Grid:
        """The threads of all blocks in each dimension, as OpenCL takes them."""
        (x, y, z), (width, height, depth) = self.grid, self.block
        return x * width, y * height, z * depth

    @property
    def attributes(self) -> dict[str, int | bool | Grid]:
        """Attributes that only CUDA has, by name; empty for a plain launch."""
        plain = {"cooperative": False, "cluster": (1, 1, 1), "programmatic": False}
        given = {name: getattr(self, name) for name in plain}
        return {name: value for name, value in given.items() if value != plain[name]}


@dataclass(frozen=True)
class Provenance:
    """The origin of a cached result: enough to repeat it, and to notice when it is stale."""

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
    protocol: str  # how configurations were timed, in words
    compiler: str = ""  # with its version; empty where not recorded
    objective: str = ""  # the objective, if it is the user's expression or function
    workload_sha256: str = ""  # hash of the space's inputs and launches; empty if not recorded
    checks: str = ""  # in words, of older results: checks of the winner and its ties; empty: not recorded
    # each check of the winner and its ties with the reason why it was not made, empty if it has passed
    checked: Mapping[str, str] = field(default_factory=dict)
    cache_state: str = ""  # "cold" or "warm" before every timed run; empty: as usual for the device
    launch_mode: str = ""  # "graph" or "eager", how launches were timed; empty: as usual for the device

    @property
    def is_probe(self) -> bool:
        """True if the result is the best of a few runs instead of a search."""
        return self.engine == ADOPTION

    @property
    def origin(self) -> str:
        """How the result was found, as the beginning of a sentence."""
        cache = f" with a {self.cache_state} cache" if self.cache_state else ""
        launch = {"": "", "graph": " in CUDA graphs", "eager": " launch by launch"}[self.launch_mode]
        verb = f"probed with {self.trials} runs" if self.is_probe else "tuned"
        return f"{verb}{cache}{launch}"


@dataclass(frozen=True)
class Entry:
    """One cached result: the best configuration of one kernel on one device for one problem."""

    sizes: Sizes
    dtype: str
    config: Config
    time_ms: float
    interval_ms: tuple[float, float]
    default_time_ms: float | None
    ties: tuple[Config, ...]  # not measurably slower than the best
    provenance: Provenance
    measured: Measured = ()  # other configurations that were verified and timed
    registers: int | None = None  # registers per thread of the best, if the compiler reports it
    front: Front = ()  # the Pareto front of time and energy, where energy was an objective
    work_bytes: float | None = None  # bytes that a run has to move; None if the space does not say
    work_flops: float | None = None  # floating-point operations of a run
    uncompared: tuple[str, ...] = ()  # outputs that the reference does not return
    noise: float | None = None  # relative difference of the times of a finalist that was timed as two
    rivals: tuple[Entry, ...] = ()  # for the same problem, from other machines: `autotune merge` keeps them
    data: str = ""  # name of the inputs' content; empty if the space has only one
    data_sha256: str = ""  # hash of that content, if it comes from a file or from `inputs`
    arguments: tuple[ArgumentSpec, ...] = ()  # those of a script, whose shapes and scalars hold for its sizes

    @property
    def problem(self) -> ProblemKey:
        """Element type, sizes and data, independent of the order of the sizes."""
        return self.dtype, tuple(sorted(self.sizes.items())), self.data

    @property
    def caveat(self) -> str:
        """A reason to doubt the result, as the end of a sentence; empty without one."""
        noisy = f"; measured with {self.noise:.0%} noise" if (self.noise or 0.0) > NOISY else ""
        names = ", ".join(self.uncompared)
        return f"{noisy}; not compared with a reference: {names}" if names else noisy

    def registers_of(self, config: Config) -> int | None:
        """Registers per thread of a configuration; None if unknown."""
        return self.registers if config == self.config else None

    @cached_property
    def relative_times(self) -> Mapping[Config, float]:
        """Times of all measured configurations relative to the best one, at least 1.

        A time from the search may lie below the best time, which is from the last round.
        """
        best_ms = self.time_ms if self.time_ms > 0 else inf
        return {config: max(1.0, time_ms / best_ms) for config, time_ms in self.measured} | {self.config: 1.0}


@dataclass(frozen=True)
class VariantTable:
    """A few configurations that together lose least over a range of sizes, chosen by a sweep.

    Their times at the swept sizes are stored with the results for these sizes. Times half-way between are
    here, because sizes half-way have no results.
    """

    dtype: str
    sizes: tuple[Sizes, ...]  # that were swept
    configs: tuple[Config, ...]
    left_out: tuple[float, ...]  # slowdowns at swept sizes, each served from the results of the others
    data: str = ""  # name of the inputs' content; empty if the space has only one
    # sizes half-way between two swept ones, with the time of each configuration relative to the shortest one;
    # None if it was not timed: it is invalid there, failed, or was far slower at the neighbouring sizes
    halfway: tuple[tuple[Sizes, tuple[float | None, ...]], ...] = ()

    @property
    def range(self) -> tuple[str, str, tuple[tuple[str, int], ...]]:
        """A later sweep with the same value replaces this one: element type, data and fixed sizes."""
        fixed = [item for item in self.sizes[0].items() if all(item[1] == row[item[0]] for row in self.sizes)]
        return self.dtype, self.data, tuple(sorted(fixed))


@dataclass(frozen=True)
class KernelRecord:
    """One cache file: all that `best_config` needs of a kernel on one device without reading YAML."""

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
    compiler: str = ""  # for CUDA devices: nvcc, or empty for NVRTC
    source: str = ""  # path of the kernel's source from the cache's folder; empty where not recorded
    variants: tuple[VariantTable, ...] = ()
    call: CallSpec | None = None  # None if the space does not say: callers pass every array

    @property
    def parameter_names(self) -> frozenset[str]:
        """The names of the parameters; records with other names belong to another kernel."""
        return frozenset(parameter.name for parameter in self.parameters)

    @property
    def is_of_script(self) -> bool:
        """True if a script listed the arguments: each entry has its own, which hold for its sizes alone."""
        return any(entry.arguments for entry in self.entries)

    @property
    def tuned_at(self) -> str:
        """When the newest result was found, rivals included: ISO 8601 in UTC, so texts compare as times."""
        results = [result for entry in self.entries for result in (entry, *entry.rivals)]
        return max((result.provenance.tuned_at for result in results), default="")

    @property
    def size_names(self) -> frozenset[str]:
        """The names of the sizes of the newest entry; older ones may have others, from before a renaming."""
        newest = max(self.entries, key=lambda entry: entry.provenance.tuned_at, default=None)
        return frozenset(newest.sizes if newest else ())


class Tier(Enum):
    """The closeness of a served configuration to the request; best first."""

    EXACT = "exact"
    INTERPOLATED = "interpolated"
    NEAREST_SIZE = "nearest_size"
    SAME_ARCHITECTURE = "same_architecture"
    SAME_VENDOR = "same_vendor"
    PORTABLE = "portable"
    DEFAULT = "default"

    def reaches(self, loosest: Tier) -> bool:
        """True if this tier may be served when `loosest` is the loosest that may."""
        tiers = list(Tier)
        return tiers.index(self) <= tiers.index(loosest)


@dataclass(frozen=True)
class Match:
    """The reason why a configuration is served: tier, device and sizes it was tuned on, and a sentence."""

    tier: Tier
    source_device: str | None
    source_sizes: Sizes | None
    distance: float  # Euclidean distance of the sizes in log2 space; 0 for the same sizes
    detail: str
