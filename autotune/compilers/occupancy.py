"""Compute how many blocks of a kernel fit on an NVIDIA multiprocessor, and why a launch would fail.

Sources: CUDA Programming Guide 13, appendix "Compute Capabilities"; NVIDIA's data sheets for the example GPU
of each architecture; `cuda_occupancy.h` of CUDA 11 for the allocation of registers and shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from autotune.core.records import DeviceInfo, Launch
from autotune.errors import InputError

WARP = 32
_REGISTERS = 65_536  # of a multiprocessor, and at most of one block
_REGISTER_UNIT = 256  # registers of a warp are allocated in this unit
_PARTITIONS = 4  # of a multiprocessor; each has an equal part of the registers
_MAX_BLOCK = (1024, 1024, 64)
_MAX_GRID = (2**31 - 1, 65_535, 65_535)
_MAX_THREADS = 1024


@dataclass(frozen=True)
class Architecture:
    """What a multiprocessor of an architecture holds, and an example of its GPUs."""

    name: str  # "sm_90"
    warps: int
    blocks: int
    shared_bytes: int
    reserved_shared_bytes: int  # by the system, in every block
    shared_memory_unit_bytes: int  # shared memory of a block is allocated in this unit
    device: DeviceInfo

    @property
    def shared_bytes_per_block(self) -> int:
        """The maximum for one block, static and dynamic together."""
        return self.shared_bytes - self.reserved_shared_bytes


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps of a kernel that a multiprocessor holds, and the resource that limits them."""

    blocks: int
    warps: int
    share: float  # of the maximum number of warps
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
    """Look up an architecture such as "sm_90"; raises InputError with the known ones."""
    if name not in ARCHITECTURES:
        raise InputError(f"unknown architecture {name!r}; expected one of {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name]


def occupancy(where: Architecture, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """The occupancy of a kernel.

    Args:
        where: The architecture.
        threads: Threads per block.
        registers: Registers per thread.
        shared_bytes: Shared memory per block, static and dynamic.
    """
    warps = _multiples(threads, WARP)
    shared = _rounded_up(shared_bytes + where.reserved_shared_bytes, where.shared_memory_unit_bytes)
    warps_by_registers = _REGISTERS // _PARTITIONS // _registers_per_warp(registers) * _PARTITIONS
    blocks_by = {
        "warps": where.warps // warps,
        "blocks": where.blocks,
        "registers": warps_by_registers // warps,
        "shared memory": where.shared_bytes // shared if shared else where.blocks,
    }
    limit, blocks = min(blocks_by.items(), key=lambda item: item[1])
    return Occupancy(blocks, blocks * warps, blocks * warps / where.warps, limit)


def why_refused(
    where: Architecture, launch: Launch, registers: int, shared_bytes: int, max_threads: int | None
) -> str | None:
    """Why a launch would fail, as `kind: figures`; None if it would not.

    Args:
        where: The architecture.
        launch: Grid, block and dynamic shared memory.
        registers: Registers per thread.
        shared_bytes: Static shared memory per block.
        max_threads: Threads per block by `__launch_bounds__`; None without one.
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
    return _rounded_up(max(1, registers) * WARP, _REGISTER_UNIT)


def _rounded_up(amount: int, unit: int) -> int:
    return _multiples(amount, unit) * unit


def _multiples(amount: int, unit: int) -> int:
    return -(-amount // unit)


def _shape(extents: tuple[int, int, int]) -> str:
    return "x".join(str(extent) for extent in extents)
