"""The use that a configuration makes of each resource of a device: its rate against the ceiling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from autotune.compilers.ptx_counters import PIPES, SECTOR_BYTES, Counts
from autotune.core.records import DeviceInfo
from autotune.diagnosis.bound import Bound
from autotune.diagnosis.device_rates import MULTIPLY_ADD, DeviceRates, Rate
from autotune.hardware.architectures import WARP
from autotune.serving.ceilings import Ceiling

COMPUTE = (Bound.FLOAT32, Bound.FLOAT64, Bound.SPECIAL, Bound.INTEGER, Bound.TENSOR)
WASTEFUL = 0.6  # share of the moved sectors below which the rest counts as moved for nothing
_BOUND_OF = dict(zip(PIPES, COMPUTE, strict=True))
_PIPE_OF = {"float64": "float64", "int32": "integer"}  # by element type; of others float32
_WORDS = {
    Bound.DRAM: "DRAM",
    Bound.L2: "L2",
    Bound.SHARED: "shared memory",
    Bound.FLOAT32: "FP32",
    Bound.FLOAT64: "FP64",
    Bound.SPECIAL: "special functions",
    Bound.INTEGER: "integer operations",
    Bound.TENSOR: "tensor cores",
    Bound.ATOMICS: "atomics",
}


@dataclass(frozen=True)
class Use:
    """The use of one resource; `bound` is what a configuration is bound by that uses it most."""

    bound: Bound
    rate: float
    ceiling: float
    unit: str  # of both: B/s or /s
    is_measured: bool  # the ceiling; else it is nominal

    @property
    def share(self) -> float:
        """Rate over ceiling."""
        return self.rate / self.ceiling


@dataclass(frozen=True)
class Work:
    """The bytes and operations of a run, according to the space and the counters."""

    bytes: float  # that have to come from or go to memory
    array_bytes: float  # size of the arrays that the launches use
    store_share: float  # of the bytes that are moved, the share that is stored
    flops: float | None  # operations, by the space; None where it does not say
    dtype: str  # the type that is computed with
    counts: Counts | None  # what a run executes; None where it could not be counted


def uses(device: DeviceInfo, ceilings: Mapping[str, Ceiling], work: Work, time_ms: float) -> tuple[Use, ...]:
    """The use of every resource whose amount and ceiling are known, highest share first."""
    uses_of = [
        Use(bound, amount / (time_ms * 1e-3), ceiling.per_s, unit, ceiling.is_measured)
        for bound, amount, ceiling, unit in _demands(device, DeviceRates(device, ceilings), work)
        if ceiling and amount > 0
    ]
    return tuple(sorted(uses_of, key=lambda use: -use.share))


def _demands(
    device: DeviceInfo, rates: DeviceRates, work: Work
) -> Iterator[tuple[Bound, float, Rate | None, str]]:
    """How much a run demands of each resource, and the device's rate of it with its unit."""
    yield Bound.DRAM, _memory_bytes(device, work), rates.memory_bytes(work.store_share), "B/s"
    counts = work.counts
    if counts is None:
        pipe = pipe_of(work.dtype)
        rate = rates.operations(pipe)
        yield _BOUND_OF[pipe], work.flops or 0.0, rate and rate.scaled(MULTIPLY_ADD), "/s"
        return
    yield Bound.L2, SECTOR_BYTES * counts.sectors, rates.cache_bytes(), "B/s"
    yield Bound.SHARED, counts.shared_passes, rates.shared_passes(), "/s"
    for pipe, bound in _BOUND_OF.items():
        yield bound, counts.pipe_lanes[pipe], rates.operations(pipe), "/s"
    if counts.atomics:
        counters = WARP * counts.atomic_words / counts.atomics
        yield Bound.ATOMICS, counts.atomics, rates.atomics(counters), "/s"


def pipe_of(dtype: str) -> str:
    """The units that compute with an element type."""
    return _PIPE_OF.get(dtype, "float32")


def _memory_bytes(device: DeviceInfo, work: Work) -> float:
    """Bytes that memory moves: at least the work's, and what a cache cannot hold of what warps ask for.

    Arrays that fit in the last cache come from memory once.
    """
    if work.array_bytes <= device.cache_bytes:
        return min(work.bytes, work.array_bytes)
    if work.counts is None or work.counts.sector_use >= WASTEFUL:
        return work.bytes
    return max(work.bytes, SECTOR_BYTES * work.counts.sectors)


def use_text(use: Use) -> str:
    """A use as text: `memory-bound (DRAM): 4.2 of 4.4 TB/s (95%)`."""
    scale, prefix = next(
        (row for row in ((1e12, "T"), (1e9, "G"), (1e6, "M")) if use.ceiling >= row[0]), (1e3, "K")
    )
    unit = f"{prefix}{use.unit}{'' if use.is_measured else ' nominal'}"
    rates = f"{use.rate / scale:.3g} of {use.ceiling / scale:.3g} {unit}"
    return f"{_WORDS[use.bound]} at {use.share:.0%}: {rates}"
