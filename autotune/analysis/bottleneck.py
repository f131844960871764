"""What bounds a configuration: the use that it makes of each resource, and the one that explains its time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log2

from autotune.compilers.ptx_counters import PIPES, SECTOR_BYTES, Counts
from autotune.core.records import DeviceInfo
from autotune.hardware.architectures import WARP
from autotune.hardware.peak_rates import (
    SHARED_BYTES_PER_CLOCK,
    SPECIAL_PER_CLOCK,
    boost_mhz,
    lanes_per_clock,
    tensor_operations_per_s,
)
from autotune.serving.ceilings import TENSOR, Ceiling

BOUND = 0.6  # share of a ceiling from which a resource explains the time
BOUND_ATOMICS = 0.25  # theirs depends on which counters collide, so that few kernels come near
LAUNCH_BOUND = 0.5  # share of the time that the same launches of an empty kernel take
BALANCED = 0.95  # share of the most used resource from which another one bounds as well
MAX_MEMORY_SHARE = 1.15  # beyond it a cache that is nearer does the work
WASTEFUL = 0.6  # share of the moved sectors below which the rest counts as moved for nothing
DIVERGENT_LANES = 16  # of 32: with fewer active ones, divergence costs more than half
VARIANT_BOUND = 0.8  # share of the time that a variant without arithmetic, or without memory, takes


class Bound(StrEnum):
    """What a configuration is bound by."""

    DRAM = "memory-bound (DRAM)"
    L2 = "memory-bound (L2)"
    SHARED = "shared-memory-bound"
    FLOAT32 = "compute-bound (FP32)"
    FLOAT64 = "compute-bound (FP64)"
    SPECIAL = "compute-bound (SFU)"
    INTEGER = "compute-bound (integer)"
    TENSOR = "compute-bound (tensor cores)"
    ATOMICS = "bound by atomics"
    DIVERGENCE = "bound by divergence"
    LATENCY = "latency-bound"
    LAUNCH = "launch-bound"
    TRANSFER = "transfer-bound"
    BALANCED = "balanced"
    MEMORY = "memory-bound"  # from variants alone, which do not tell which memory
    COMPUTE = "compute-bound"  # likewise
    UNKNOWN = "not known"


_MEMORIES = (Bound.DRAM, Bound.L2)
_COMPUTE = (Bound.FLOAT32, Bound.FLOAT64, Bound.SPECIAL, Bound.INTEGER, Bound.TENSOR)
_BOUND_OF = dict(zip(PIPES, _COMPUTE, strict=True))


@dataclass(frozen=True)
class Use:
    """The use of one resource: what is done in a second, and the ceiling; `is_measured` says whose it is."""

    bound: Bound
    rate: float
    ceiling: float
    unit: str  # B/s or /s
    is_measured: bool

    @property
    def share(self) -> float:
        """Rate over ceiling."""
        return self.rate / self.ceiling


@dataclass(frozen=True)
class Work:
    """What a run moves and computes, as far as the space and the counters say.

    Attributes:
        bytes: That have to come from or go to memory.
        array_bytes: Size of the arrays that the launches use.
        store_share: Of the arrays, the share that is written.
        flops: Operations, by the space; None where it does not say.
        dtype: The type that is computed with.
        counts: What a run executes; None where it could not be counted.
    """

    bytes: float
    array_bytes: float
    store_share: float
    flops: float | None
    dtype: str
    counts: Counts | None


@dataclass(frozen=True)
class Times:
    """Times of one run and of what else it takes, in ms; None and empty where not measured."""

    run_ms: float
    launch_ms: float | None = None
    transfer_ms: float | None = None
    variants_ms: Mapping[str, float] | None = None


def uses(device: DeviceInfo, ceilings: Mapping[str, Ceiling], work: Work, time_ms: float) -> tuple[Use, ...]:
    """The use of every resource whose amount and ceiling are known, highest share first."""
    seconds = time_ms * 1e-3
    found = [
        Use(bound, amount / seconds, ceiling, unit, measured)
        for bound, amount, unit, ceiling, measured in _amounts(device, ceilings, work)
        if ceiling and amount > 0
    ]
    return tuple(sorted(found, key=lambda use: -use.share))


_Amount = tuple[Bound, float, str, float, bool]


def _amounts(device: DeviceInfo, ceilings: Mapping[str, Ceiling], work: Work) -> Iterable[_Amount]:
    """Resource, amount, unit, ceiling and whether that was measured."""
    rate = Rates(device, ceilings)
    counts = work.counts
    yield Bound.DRAM, _memory_bytes(device, work), "B/s", *rate.memory(work.store_share)
    if counts is None:
        if work.flops:
            bound = {"float64": Bound.FLOAT64, "int32": Bound.INTEGER}.get(work.dtype, Bound.FLOAT32)
            dtype = {Bound.FLOAT64: "float64", Bound.INTEGER: "int32"}.get(bound, "float32")
            lanes, measured = rate.lanes(dtype)
            yield bound, work.flops, "/s", 2 * lanes, measured
        return
    yield Bound.L2, SECTOR_BYTES * counts.sectors, "B/s", *rate.cache()
    yield Bound.SHARED, counts.shared_passes, "/s", *rate.shared_passes()
    for pipe, bound in _BOUND_OF.items():
        yield bound, counts.pipe_lanes[pipe], "/s", *rate.lanes({"integer": "int32"}.get(pipe, pipe))
    if counts.atomics:
        different = WARP * counts.atomic_words / counts.atomics
        yield Bound.ATOMICS, counts.atomics, "/s", *rate.atomics(different)


def _memory_bytes(device: DeviceInfo, work: Work) -> float:
    """Bytes that memory moves: at least the work's, and what a cache cannot hold of what warps ask for.

    Arrays that fit in the last cache come from memory once.
    """
    if work.array_bytes <= device.cache_bytes:
        return min(work.bytes, work.array_bytes)
    counts = work.counts
    wastes = (
        counts is not None and counts.sector_use < WASTEFUL and counts.sectors * SECTOR_BYTES > work.bytes
    )
    return SECTOR_BYTES * counts.sectors if counts and wastes else work.bytes


class Rates:
    """The ceilings of a device, each with whether it was measured; else nominal, 0 where neither is known."""

    def __init__(self, device: DeviceInfo, ceilings: Mapping[str, Ceiling]) -> None:
        self._device, self._ceilings = device, ceilings

    def memory(self, store_share: float) -> tuple[float, bool]:
        """Bytes per second of memory, for accesses of which this share is stores."""
        name = "memory read" if store_share < 0.2 else "memory write" if store_share > 0.8 else "memory copy"
        return self._measured(name) or (self._device.memory_bandwidth_bytes_per_s or 0.0, False)

    def cache(self) -> tuple[float, bool]:
        """Bytes per second of the fastest cache that was measured."""
        found = [one.value for name, one in self._ceilings.items() if name.startswith("read of")]
        return (max(found), True) if found else (0.0, False)

    def shared_passes(self) -> tuple[float, bool]:
        """Passes of a warp to shared memory per second."""
        measured = self._measured("shared memory")
        if measured:
            return measured[0] / SHARED_BYTES_PER_CLOCK, True
        return self._per_clock(1), False

    def lanes(self, dtype: str) -> tuple[float, bool]:
        """Operations of a type in a second, a multiply-add as one."""
        if dtype == "special":
            lanes, measured = self.lanes("float32")
            per_clock = lanes_per_clock(self._device.architecture, "float32")
            return (lanes * SPECIAL_PER_CLOCK / per_clock, measured) if per_clock else (0.0, False)
        if dtype == "tensor":
            value, measured = self._measured(TENSOR) or (tensor_operations_per_s(self._device) or 0.0, False)
            return value / 2, measured
        found = self._measured(f"{dtype} multiply-add")
        if found:
            return found[0] / 2, True
        return self._per_clock(lanes_per_clock(self._device.architecture, dtype) or 0), False

    def atomics(self, different: float) -> tuple[float, bool]:
        """Between those to one counter and to as many as a warp has threads, by how many are different."""
        one, many = self._measured("atomics to one counter"), self._measured("atomics to many counters")
        if one is None or many is None:
            return 0.0, False
        part = log2(max(1.0, min(different, WARP))) / log2(WARP)
        return float(one[0] ** (1 - part) * many[0] ** part), True

    def _per_clock(self, amount: float) -> float:
        mhz = boost_mhz(self._device.architecture) if self._device.kind == "gpu" else None
        return amount * self._device.compute_units * mhz * 1e6 if mhz else 0.0

    def _measured(self, name: str) -> tuple[float, bool] | None:
        found = self._ceilings.get(name)
        return (found.value, True) if found else None


def verdict(times: Times, used: Sequence[Use], counts: Counts | None) -> tuple[Bound, str]:
    """What bounds the run, and the evidence for it in one sentence."""
    if times.transfer_ms is not None and times.transfer_ms > times.run_ms:
        whole = times.transfer_ms + times.run_ms
        return Bound.TRANSFER, (
            f"copies to and from the host take {times.transfer_ms:.4g} ms, "
            f"{times.transfer_ms / whole:.0%} of a call's time, the kernel {times.run_ms:.4g} ms"
        )
    if times.launch_ms is not None and times.launch_ms >= LAUNCH_BOUND * times.run_ms:
        share = times.launch_ms / times.run_ms
        return Bound.LAUNCH, (
            f"the same launches of an empty kernel take {times.launch_ms:.4g} of {times.run_ms:.4g} ms "
            f"({share:.0%})"
        )
    candidates = [use for use in used if use.bound not in _MEMORIES or use.share <= MAX_MEMORY_SHARE]
    bounding = [
        use for use in candidates if use.share >= (BOUND_ATOMICS if use.bound is Bound.ATOMICS else BOUND)
    ]
    if bounding:
        return _by_use(bounding, counts)
    if counts is None and times.variants_ms:
        return _by_variants(times.run_ms, times.variants_ms)
    top = "nothing that it uses is known"
    if candidates:
        top = f"the most used resource is at {candidates[0].share:.0%} ({candidates[0].bound})"
    if counts is None:
        return Bound.UNKNOWN, f"{top}, and its instructions could not be counted here"
    return Bound.LATENCY, f"{top}, so that it waits for most of its time"


def _by_use(bounding: Sequence[Use], counts: Counts | None) -> tuple[Bound, str]:
    first = bounding[0]
    evidence = f"{use_text(first)}"
    if first.bound in (*_COMPUTE, Bound.SHARED) and counts and counts.active_lanes < DIVERGENT_LANES:
        return Bound.DIVERGENCE, (
            f"{evidence}, and of the {WARP} threads of a warp only {counts.active_lanes:.1f} are active on "
            "average"
        )
    if first.bound is Bound.SHARED and counts and counts.conflict_degree > 1.1:
        evidence += f"; bank conflicts multiply its passes by {counts.conflict_degree:.1f}"
    if first.bound is Bound.DRAM and counts and counts.sector_use < WASTEFUL:
        evidence += (
            f"; of each {SECTOR_BYTES} bytes moved, threads ask for {counts.sector_use * SECTOR_BYTES:.0f}"
        )
    others = [use for use in bounding[1:] if use.share >= BALANCED * first.share]
    if others:
        return Bound.BALANCED, "; ".join(use_text(use) for use in (first, *others))
    return first.bound, evidence


def overlap(run_ms: float, variants_ms: Mapping[str, float]) -> float | None:
    """The part of the shorter variant that runs beside the other; None without both variants.

    1: the whole takes as long as the longer of memory and arithmetic. 0: it takes as long as both.
    """
    memory, compute = variants_ms.get("MEMORY_ONLY"), variants_ms.get("COMPUTE_ONLY")
    if not memory or not compute:
        return None
    return min(1.0, max(0.0, (memory + compute - run_ms) / min(memory, compute)))


def _by_variants(run_ms: float, variants_ms: Mapping[str, float]) -> tuple[Bound, str]:
    """By the variants without arithmetic and without memory."""
    names = {"MEMORY_ONLY": Bound.MEMORY, "COMPUTE_ONLY": Bound.COMPUTE}
    shares = {bound: variants_ms[name] / run_ms for name, bound in names.items() if name in variants_ms}
    said = ", ".join(
        f"without {'arithmetic' if bound is Bound.MEMORY else 'memory'} it takes {share:.0%} of its time"
        for bound, share in shares.items()
    )
    bounds = [bound for bound, share in shares.items() if share >= VARIANT_BOUND]
    if not bounds:
        return Bound.LATENCY, said
    return (bounds[0] if len(bounds) == 1 else Bound.BALANCED), said


def use_text(use: Use) -> str:
    """A use as text: `memory-bound (DRAM): 4.2 of 4.4 TB/s (95%)`."""
    scale, prefix = next(
        (row for row in ((1e12, "T"), (1e9, "G"), (1e6, "M")) if use.ceiling >= row[0]), (1e3, "K")
    )
    unit = f"{prefix}{use.unit}{'' if use.is_measured else ' nominal'}"
    rates = f"{use.rate / scale:.3g} of {use.ceiling / scale:.3g} {unit}"
    return f"{_WORDS[use.bound]} at {use.share:.0%}: {rates}"


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


WHAT_HELPS = {
    Bound.DRAM: "move fewer bytes: keep what is used again in shared memory or registers, use whole sectors",
    Bound.L2: "let fewer loads reach L2: keep what is used again in shared memory or registers",
    Bound.SHARED: "fewer and wider accesses, more values in registers; padding against bank conflicts",
    Bound.FLOAT32: "fewer operations; tensor cores where the precision allows it",
    Bound.FLOAT64: "fewer operations; a narrower type where the precision allows it",
    Bound.SPECIAL: "fewer or cheaper divisions, roots and functions",
    Bound.INTEGER: "simpler indices: unrolled loops, more work per thread, offsets of 32 bits",
    Bound.TENSOR: "a narrower type where the precision allows it",
    Bound.ATOMICS: "fewer of them: add up in registers and shared memory first",
    Bound.DIVERGENCE: "let all threads of a warp take the same path",
    Bound.LATENCY: "have more in flight: wider loads, more work per thread, unrolled loops, more warps",
    Bound.LAUNCH: "fewer launches with more work in each, or a graph of them",
    Bound.TRANSFER: "fewer or pinned copies, or copies in pieces that overlap: `autotune versus --pieces`",
    Bound.MEMORY: "move fewer bytes",
    Bound.COMPUTE: "fewer operations",
}


def advice_from(
    config: Mapping[str, object], timed: Sequence[tuple[Mapping[str, object], float]], time_ms: float
) -> tuple[str, ...]:
    """What trials say of changing one parameter of a configuration: the best and the worst value of each."""
    found: dict[str, list[tuple[float, object]]] = {}
    for other, other_ms in timed:
        changed = [name for name in config if other.get(name) != config[name]]
        if len(changed) == 1 and other.keys() == config.keys():
            found.setdefault(changed[0], []).append((other_ms / time_ms - 1, other[changed[0]]))
    lines = []
    for name, changes in sorted(found.items(), key=lambda item: -max(abs(change) for change, _ in item[1])):
        shown = {min(changes, key=lambda row: row[0]), max(changes, key=lambda row: row[0])}
        said = ", ".join(
            f"{value} takes {abs(change):.1%} {'more' if change >= 0 else 'less'}"
            for change, value in sorted(shown, key=lambda row: row[0])
        )
        lines.append(f"{name}={config[name]}: {said}")
    return tuple(lines)
