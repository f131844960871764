"""A page of Little's law and occupancy, worked for a Fermi GPU as in the literature, and for a device.

What is in flight at a time is latency times throughput. The page says how many warps that is, and how many a
multiprocessor holds for each number of registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from autotune.cli.tables import UNKNOWN, Table, table
from autotune.compilers.occupancy import occupancy
from autotune.core.expression_ops import ceil_div
from autotune.core.records import DeviceInfo
from autotune.hardware.architectures import ARCHITECTURES, PARTITIONS, REGISTERS, WARP, Architecture
from autotune.hardware.peak_rates import boost_mhz
from autotune.serving.ceilings import Ceiling

_LOAD_BYTES = 4  # of a thread, one in flight
_BLOCK = 256  # threads
_REGISTERS = (10, 21, 22, 32, 33, 64)  # of a thread
# The limits of a multiprocessor of compute capability 2.0; its shared memory does not count here.
_FERMI = replace(
    ARCHITECTURES["sm_75"], warps=48, blocks=8, registers=32_768 // WARP // PARTITIONS, register_unit=2
)


@dataclass(frozen=True)
class Pace:
    """The figures of a device in Little's law; None for those that are not known."""

    name: str
    units: int  # multiprocessors, or cores
    warps: int | None  # the most that a multiprocessor holds; None for a CPU, which has none
    ghz: float | None  # the clock in which latencies are counted
    memory_s: float | None  # latency of a load
    bytes_per_s: float | None  # bandwidth of memory
    arithmetic_s: float | None  # latency of a multiply-add
    operations_per_s: float | None  # multiply-adds of the whole device


FERMI = Pace("Fermi", 16, _FERMI.warps, 1.566, 800 / 1.566e9, 144e9, 20 / 1.566e9, 32 * 16 * 1.566e9)


def pace_of(device: DeviceInfo, ceilings: Mapping[str, Ceiling]) -> Pace:
    """The same of a device, from its measured ceilings and the boost clock of its architecture."""

    def value(name: str, share: float = 1.0) -> float | None:
        return ceilings[name].value * share if name in ceilings else None

    mhz, known = boost_mhz(device.architecture), ARCHITECTURES.get(device.architecture)
    return Pace(
        name=device.name,
        units=device.compute_units,
        warps=known.warps if known else None,
        ghz=mhz / 1e3 if mhz else None,
        memory_s=value("latency of memory"),
        bytes_per_s=value("memory read") or device.memory_bandwidth_bytes_per_s,
        arithmetic_s=value("latency of float32 multiply-add"),
        operations_per_s=value("float32 multiply-add", 0.5),
    )


def lesson(device: DeviceInfo, ceilings: Mapping[str, Ceiling]) -> Iterator[Table | str]:
    """The page: two tables of Little's law and one of occupancy, with what is not known."""
    paces = (FERMI, pace_of(device, ceilings))
    titles = ("", *(pace.name for pace in paces))
    yield "Memory: bytes in flight on the whole device = latency x bandwidth"
    yield table(titles, list(zip(_MEMORY, *map(_memory_cells, paces), strict=True)))
    yield "\nArithmetic: operations in flight on a multiprocessor = latency x throughput"
    yield table(titles, list(zip(_ARITHMETIC, *map(_arithmetic_cells, paces), strict=True)))
    if device.kind == "cpu":
        yield (
            f"\n{device.name} is a CPU: a core runs the threads of a block one after the other, or in "
            "vectors. It has no warps. The latency of its arithmetic, its clock under load and the loads "
            "that a core has in flight are not known here."
        )
    if paces[1].memory_s is None or (paces[1].arithmetic_s is None and device.kind == "gpu"):
        yield "\nnot measured: run `autotune devices --measure` with this device and cache first"
    yield f"\nOccupancy: share of the warps that can be resident, for blocks of {_BLOCK} threads"
    known = ARCHITECTURES.get(device.architecture)
    rows = [(str(count), _resident_text(_FERMI, count), _resident_text(known, count)) for count in _REGISTERS]
    yield table(("registers of a thread", *titles[1:]), rows)
    if known:
        most = range(255, 0, -1)
        caps = [
            next((count for count in most if occupancy(known, _BLOCK, count, 0).blocks >= blocks), 0)
            for blocks in range(1, known.warps * WARP // _BLOCK + 1)
        ]
        said = ", ".join(f"{blocks} with {cap}" for blocks, cap in enumerate(caps, 1))
        yield (
            f"\nBlocks that fit on a multiprocessor ({REGISTERS:,} registers), and the most registers that "
            f"their threads may have: {said}. A cap between two of these numbers lets no more blocks fit."
        )


_MEMORY = (
    "latency of a load",
    "bandwidth",
    "in flight",
    f"threads with a load of {_LOAD_BYTES} bytes each",
    "warps",
    "warps on a multiprocessor",
)
_ARITHMETIC = (
    "latency of a multiply-add",
    "in a cycle, on a multiprocessor",
    "in flight",
    "warps with one each",
)


def _memory_cells(pace: Pace) -> Iterator[str]:
    yield _latency(pace, pace.memory_s)
    rate, has_warps = pace.bytes_per_s, pace.warps is not None
    per_cycle = f" = {rate / pace.ghz * 1e-9:.0f} bytes a cycle" if rate and pace.ghz else ""
    yield f"{rate * 1e-9:,.0f} GB/s{per_cycle}" if rate else UNKNOWN
    flight = pace.memory_s * rate if pace.memory_s and rate else None
    threads = flight / _LOAD_BYTES if flight else None
    yield f"{flight / 1e3:,.1f} kB" if flight else UNKNOWN
    yield f"{threads:,.0f}" if threads and has_warps else UNKNOWN
    yield f"{threads / WARP:,.0f}" if threads and has_warps else UNKNOWN
    yield _of_most(threads / WARP / pace.units, pace) if threads and has_warps else UNKNOWN


def _arithmetic_cells(pace: Pace) -> Iterator[str]:
    yield _latency(pace, pace.arithmetic_s)
    rate = pace.operations_per_s / pace.units if pace.operations_per_s else None
    yield f"{rate / pace.ghz * 1e-9:.0f}" if rate and pace.ghz else UNKNOWN
    flight = pace.arithmetic_s * rate if pace.arithmetic_s and rate else None
    yield f"{flight:.0f}" if flight else UNKNOWN
    yield _of_most(ceil_div(round(flight), WARP), pace) if flight else UNKNOWN


def _of_most(warps: float, pace: Pace) -> str:
    return f"{warps:.0f} of at most {pace.warps}" + (
        ", so each needs more" if warps > (pace.warps or warps) else ""
    )


def _latency(pace: Pace, seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    if pace.ghz is None:
        return f"{seconds * 1e9:.3g} ns"
    return f"{seconds * pace.ghz * 1e9:.3g} cycles = {seconds * 1e9:.3g} ns at {pace.ghz:.4g} GHz"


def _resident_text(where: Architecture | None, registers: int) -> str:
    """The blocks that a multiprocessor holds, and their share of its warps."""
    if where is None:
        return UNKNOWN
    resident = occupancy(where, _BLOCK, registers, 0)
    return f"{resident.blocks} blocks, {resident.share:.3g}"
