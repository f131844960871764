"""How many blocks of a kernel fit on a multiprocessor of an NVIDIA GPU, and why a launch is refused.

Figures per architecture: CUDA Programming Guide 13, appendix "Compute Capabilities", table of technical
specifications, and NVIDIA's data sheets for the GPU that stands for each. How registers and shared memory
are handed out: the occupancy calculator that came with CUDA 11 (`cuda_occupancy.h`).
"""

from __future__ import annotations

from dataclasses import dataclass

from autotune.core.records import DeviceInfo, Launch
from autotune.errors import InputError

WARP = 32
_REGISTERS = 65_536  # of a multiprocessor, and the most that one block may have
_REGISTERS_AT_ONCE = 256  # a warp's registers are a multiple of this
_PARTITIONS = 4  # of a multiprocessor; each has a quarter of the registers
_MAX_BLOCK = (1024, 1024, 64)
_MAX_GRID = (2**31 - 1, 65_535, 65_535)
_MAX_THREADS = 1024


@dataclass(frozen=True)
class Architecture:
    """What a multiprocessor holds at a time, and a GPU that has such ones."""

    name: str  # "sm_90"
    warps: int
    blocks: int
    shared_bytes: int
    reserved_shared_bytes: int  # of the system, in every block
    shared_bytes_at_once: int  # a block's shared memory is a multiple of this
    device: DeviceInfo

    @property
    def shared_bytes_per_block(self) -> int:
        """The most that one block may have, static and dynamic together."""
        return self.shared_bytes - self.reserved_shared_bytes


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps that a multiprocessor holds of one kernel; `limit` is what admits no more blocks."""

    blocks: int
    warps: int
    share: float  # of the warps that a multiprocessor has room for
    limit: str  # "warps", "blocks", "registers" or "shared memory"


def _architecture(
    name: str,
    warps: int,
    blocks: int,
    shared_kib: int,
    gpu: str,
    units: int,
    memory_gib: int,
    gb_per_s: float,
    cache_mib: int,
) -> Architecture:
    since_ampere = name != "sm_75"
    reserved_bytes = 1024 if since_ampere else 0
    device = DeviceInfo(
        backend="cuda",
        name=gpu,
        slug=gpu.lower().replace(" ", "-"),
        kind="gpu",
        vendor="NVIDIA",
        architecture=name,
        compute_units=units,
        warp_size=WARP,
        max_threads_per_block=_MAX_THREADS,
        shared_bytes_per_block=shared_kib * 1024 - reserved_bytes,
        registers_per_block=_REGISTERS,
        memory_bytes=memory_gib * 2**30,
        memory_bandwidth_bytes_per_s=gb_per_s * 1e9,
        cache_bytes=cache_mib * 2**20,
        has_shuffle=True,
        driver="none",
        runtime="none",
    )
    granularity = 128 if since_ampere else 256
    return Architecture(name, warps, blocks, shared_kib * 1024, reserved_bytes, granularity, device)


ARCHITECTURES = {
    item.name: item
    for item in (
        #             name     warps blocks KiB  GPU                        units GiB  GB/s  L2 MiB
        _architecture("sm_75", 32, 16, 64, "NVIDIA T4", 40, 16, 320, 4),
        _architecture("sm_80", 64, 32, 164, "NVIDIA A100", 108, 40, 1555, 40),
        _architecture("sm_86", 48, 16, 100, "NVIDIA A10", 72, 24, 600, 6),
        _architecture("sm_87", 48, 16, 164, "NVIDIA Jetson AGX Orin", 16, 64, 204.8, 4),
        _architecture("sm_89", 48, 24, 100, "NVIDIA L4", 58, 24, 300, 48),
        _architecture("sm_90", 64, 32, 228, "NVIDIA H100", 132, 80, 3350, 50),
        _architecture("sm_100", 64, 32, 228, "NVIDIA B200", 148, 180, 8000, 126),
        _architecture("sm_120", 48, 24, 100, "NVIDIA GeForce RTX 5090", 170, 32, 1792, 96),
    )
}


def architecture(name: str) -> Architecture:
    """Look one up by its name, such as "sm_90"; raises InputError that lists all of them."""
    if name not in ARCHITECTURES:
        raise InputError(f"unknown architecture {name!r}; expected one of {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name]


def occupancy(where: Architecture, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """What fits of blocks of `threads` threads with so many registers each, and so much shared memory."""
    warps = _multiples(threads, WARP)
    shared = _rounded_up(shared_bytes + where.reserved_shared_bytes, where.shared_bytes_at_once)
    warps_by_registers = _REGISTERS // _PARTITIONS // _registers_per_warp(registers) * _PARTITIONS
    rooms = {
        "warps": where.warps // warps,
        "blocks": where.blocks,
        "registers": warps_by_registers // warps,
        "shared memory": where.shared_bytes // shared if shared else where.blocks,
    }
    limit = min(rooms, key=lambda name: rooms[name])
    blocks = rooms[limit]
    return Occupancy(blocks, blocks * warps, blocks * warps / where.warps, limit)


def why_refused(
    where: Architecture, launch: Launch, registers: int, shared_bytes: int, max_threads: int | None
) -> str | None:
    """Why a kernel cannot be launched so, as `kind: figures`; None when it can.

    `shared_bytes` is the kernel's static shared memory; `max_threads` what it was compiled for, None for any.
    """
    block, grid = launch.block, launch.grid
    threads = block[0] * block[1] * block[2]
    if threads > _MAX_THREADS or any(size > most for size, most in zip(block, _MAX_BLOCK, strict=True)):
        return f"block too large: {_shape(block)} threads, at most {_MAX_THREADS} in {_shape(_MAX_BLOCK)}"
    if any(size > most for size, most in zip(grid, _MAX_GRID, strict=True)):
        return f"grid too large: {_shape(grid)} blocks, at most {_shape(_MAX_GRID)}"
    if max_threads is not None and threads > max_threads:
        return f"more threads than __launch_bounds__: {threads} in a block, compiled for {max_threads}"
    shared = shared_bytes + launch.shared_bytes
    if shared > where.shared_bytes_per_block:
        return (
            f"too much shared memory: {shared:,} bytes in a block, at most {where.shared_bytes_per_block:,}"
        )
    needed = _registers_per_warp(registers) * _rounded_up(_multiples(threads, WARP), _PARTITIONS)
    if needed > _REGISTERS:
        return (
            f"too many registers: {registers} in each of {threads} threads take {needed:,}, "
            f"at most {_REGISTERS:,}"
        )
    return None


def _registers_per_warp(registers: int) -> int:
    return _rounded_up(max(1, registers) * WARP, _REGISTERS_AT_ONCE)


def _rounded_up(amount: int, unit: int) -> int:
    return _multiples(amount, unit) * unit


def _multiples(amount: int, unit: int) -> int:
    return -(-amount // unit)


def _shape(extents: tuple[int, int, int]) -> str:
    return "x".join(str(extent) for extent in extents)
