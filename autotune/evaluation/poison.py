"""Memory content that no result may depend on: outputs before a run, and guard zones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.devices.base import Bytes
from autotune.devices.element_types import is_floating, numpy_dtype, plain_dtype
from autotune.problem.workload import Array

GUARD_BYTES = 16_384  # catches a block of 1024 threads that write 16 bytes each past the end
# Bytes that fill an output before a run; the problem's seed chooses one. A kernel without an initial value
# for a maximum, a minimum or a sum may be right by luck with one of them, but not with all.
POISON_FLOAT = (0xFF, 0x7B, 0xFB)  # NaN, huge and huge negative, the last two finite in every precision
POISON_INTEGER = (0xA5, 0x5A, 0x00)  # negative if signed, positive, and the smallest unsigned value


def poison(array: Array, seed: int, *, may_be_nan: bool) -> Bytes:
    """The content of an unfilled array; no NaN where a result may be NaN."""
    has_floats = is_floating(numpy_dtype(plain_dtype(array.dtype)))
    poisons = POISON_FLOAT[may_be_nan:] if has_floats else POISON_INTEGER
    return np.broadcast_to(np.uint8(poisons[seed % len(poisons)]), array.size_bytes)  # takes no memory


def others_come_first(seed: int) -> bool:
    """True if the run after other inputs is the first of the two that verify a workload.

    Its outputs then start with the results for these, and the memory of blocks is dirty in the run on
    poisoned outputs. Else it is the second, and its outputs start with the right results except for a part.
    Workloads to verify on have different seeds, so together they have both orders, each with few and with
    many other inputs.
    """
    return seed % 2 == 1


def few_others_differ(seed: int) -> bool:
    """True if a few of the other inputs differ from the right ones, instead of half."""
    return seed // 2 % 2 == 1


def guard_zone(array: Array, seed: int) -> Bytes:
    """The content of a guard zone: values that make a result wrong if a kernel reads them.

    A maximum ignores NaN, and only NaN and infinities change a product with 0. So several values alternate,
    and each seed begins with a different one. Outputs and inputs begin with different ones, to notice copies.
    """
    dtype = numpy_dtype(plain_dtype(array.dtype))
    if is_floating(dtype):
        values = [math.nan, math.inf, -math.inf]
    else:
        most = np.iinfo(dtype).max
        values = [most, -most if dtype.kind == "i" else 1, most // 3]
    zone = np.roll(np.array(values, dtype), seed + (array.role != "in"))
    return as_bytes(np.tile(zone, GUARD_BYTES // zone.nbytes + 1))[:GUARD_BYTES]


def as_bytes(content: NDArray[Any]) -> Bytes:
    """The bytes of an array."""
    return np.ascontiguousarray(content).reshape(-1).view(np.uint8)
