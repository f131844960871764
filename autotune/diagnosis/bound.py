"""The kinds of bottleneck, and their remedies."""

from __future__ import annotations

from enum import StrEnum


class Bound(StrEnum):
    """The bottleneck of a configuration."""

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


WHAT_HELPS = {
    Bound.DRAM: "move fewer bytes: keep what is used again in shared memory or registers, use whole sectors",
    Bound.L2: "let fewer loads reach L2: keep what is used again in shared memory or registers",
    Bound.SHARED: "fewer and wider accesses, more values in registers; padding against bank conflicts",
    Bound.FLOAT32: "fewer operations; tensor cores where the precision allows it",
    Bound.FLOAT64: "fewer operations; a narrower type where the precision allows it",
    Bound.SPECIAL: "fewer or cheaper divisions, roots and functions",
    Bound.INTEGER: "simpler indices: unrolled loops, more work per thread, offsets of 32 bits",
    Bound.TENSOR: "a narrower type where the precision allows it",
    Bound.ATOMICS: "fewer atomics: add up in registers and shared memory first",
    Bound.DIVERGENCE: "let all threads of a warp take the same path",
    Bound.LATENCY: "have more in flight: wider loads, more work per thread, unrolled loops, more warps",
    Bound.LAUNCH: "fewer launches with more work in each, or a graph of them",
    Bound.TRANSFER: "fewer or pinned copies, or copies in pieces that overlap with the kernel",
    Bound.MEMORY: "move fewer bytes",
    Bound.COMPUTE: "fewer operations",
}
