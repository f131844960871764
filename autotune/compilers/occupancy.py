"""Compute how many blocks of a kernel fit on a multiprocessor, and why a launch would fail.

Sources: `cuda_occupancy.h` of CUDA 11 for the allocation of registers and shared memory on NVIDIA's GPUs, and
LLVM's AMDGPU backend for AMD's.
"""

from __future__ import annotations

from dataclasses import dataclass

from autotune.core.expression_ops import ceil_div, round_up
from autotune.core.records import Launch
from autotune.hardware.architectures import MAX_BLOCK, MAX_GRID, MAX_THREADS, PARTITIONS, Architecture

_SCALAR_UNIT = 16  # AMD's scalar registers of a warp are allocated in this unit
_TRAP_SCALARS = 16  # of each warp, which ROCm reserves for its trap handler
_MAX_AMD_THREADS = 2**32 - 1  # of a grid in one dimension


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps of a kernel that a multiprocessor holds, and the resource that limits them."""

    blocks: int
    warps: int
    share: float  # of the maximum number of warps
    limit: str  # "warps", "blocks", "registers", "scalar registers" or "shared memory"


def occupancy(
    where: Architecture, threads: int, registers: int, shared_bytes: int, scalar_registers: int = 0
) -> Occupancy:
    """The occupancy of a kernel, by its threads, its registers per thread and its shared memory per block.

    Shared memory is static and dynamic. Only AMD's GPUs have scalar registers, which count per warp.
    """
    warps = ceil_div(threads, where.device.warp_size)
    shared = round_up(shared_bytes + where.reserved_shared_bytes, where.shared_memory_unit_bytes)
    most = where.warps if where.is_amd and warps == 1 else where.blocks
    blocks_by = {
        "warps": where.warps // warps,
        "blocks": most,
        "registers": _warps_of_a_partition(where, registers) * PARTITIONS // warps,
        "shared memory": where.shared_bytes // shared if shared else most,
    }
    if where.scalar_registers:
        scalars = round_up(scalar_registers, _SCALAR_UNIT) + _TRAP_SCALARS
        blocks_by["scalar registers"] = where.scalar_registers // scalars * PARTITIONS // warps
    limit, blocks = min(blocks_by.items(), key=lambda item: item[1])
    return Occupancy(blocks, blocks * warps, blocks * warps / where.warps, limit)


def bytes_to_add(
    where: Architecture, threads: int, registers: int, shared_bytes: int, blocks: int
) -> int | None:
    """Shared memory to add to a block for exactly `blocks` resident blocks; None if no amount does it."""
    unit = where.shared_memory_unit_bytes
    room = where.shared_bytes // blocks // unit * unit - where.reserved_shared_bytes
    extra = min(room, where.device.shared_bytes_per_block) - shared_bytes
    if extra <= 0 or occupancy(where, threads, registers, shared_bytes + extra).blocks != blocks:
        return None
    return extra


def why_refused(
    where: Architecture, launch: Launch, registers: int, shared_bytes: int, max_threads: int | None
) -> str | None:
    """The reason why a launch would fail, as `kind: figures`; None if it would not.

    `registers` are per thread, `shared_bytes` are static, and `max_threads` is of `__launch_bounds__`.
    """
    block, grid = launch.block, launch.grid
    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS or any(size > most for size, most in zip(block, MAX_BLOCK, strict=True)):
        return f"block too large: {_shape(block)} threads, at most {MAX_THREADS} in {_shape(MAX_BLOCK)}"
    if any(size > most for size, most in zip(grid, MAX_GRID, strict=True)):
        return f"grid too large: {_shape(grid)} blocks, at most {_shape(MAX_GRID)}"
    if where.is_amd and grid[0] * block[0] > _MAX_AMD_THREADS:
        return f"grid too large: {grid[0] * block[0]:,} threads in x, at most {_MAX_AMD_THREADS:,}"
    if max_threads is not None and threads > max_threads:
        return f"more threads than __launch_bounds__: {threads} in a block, compiled for {max_threads}"
    if reason := too_much_shared_memory(where, shared_bytes + launch.shared_bytes):
        return reason
    warps = ceil_div(ceil_div(threads, where.device.warp_size), PARTITIONS)  # of a partition
    if warps > _warps_of_a_partition(where, registers):
        scale = where.device.warp_size * PARTITIONS
        needed = warps * round_up(registers, where.register_unit) * scale
        return (
            f"too many registers: {threads} threads of {registers} each take {needed:,}, "
            f"at most {where.registers * scale:,}"
        )
    return None


def too_much_shared_memory(where: Architecture, shared_bytes: int) -> str | None:
    """The reason why no block can have this much shared memory; None if it can."""
    if shared_bytes <= where.device.shared_bytes_per_block:
        return None
    return (
        f"too much shared memory{' (LDS)' if where.is_amd else ''}: {shared_bytes:,} bytes in a block, "
        f"at most {where.device.shared_bytes_per_block:,}"
    )


def _warps_of_a_partition(where: Architecture, registers: int) -> int:
    """The number of warps for which a partition of a multiprocessor has registers."""
    return where.registers // round_up(max(1, registers), where.register_unit)


def _shape(extents: tuple[int, int, int]) -> str:
    return "x".join(str(extent) for extent in extents)
