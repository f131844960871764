"""What memory holds that no result may depend on: outputs before a run, and the guard zones of arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.devices.base import Bytes
from autotune.devices.element_types import is_floating, numpy_dtype, plain_dtype
from autotune.problem.problem_instance import Array

GUARD_BYTES = 16_384  # catches a block of 1024 threads that write 16 bytes each past the end
# The byte that fills an output before a run; the problem's seed chooses one. A kernel that sets no
# initial value for a maximum, a minimum or a sum may be right by luck under one of them, but not under all.
POISON_FLOAT = (0xFF, 0x7B, 0xFB)  # NaN, huge and huge negative: finite in every precision, half included
POISON_INTEGER = (0xA5, 0x5A, 0x00)  # negative if signed, positive, and the smallest unsigned value


def poison(array: Array, seed: int, *, may_be_nan: bool) -> Bytes:
    """The content of an array that nobody fills; no NaN where a result may be NaN."""
    has_floats = is_floating(numpy_dtype(plain_dtype(array.dtype)))
    poisons = POISON_FLOAT[may_be_nan:] if has_floats else POISON_INTEGER
    return np.broadcast_to(np.uint8(poisons[seed % len(poisons)]), array.size_bytes)  # takes no memory


def guard_zone(array: Array, seed: int) -> Bytes:
    """The content of a guard zone: values that spoil a result if they are read.

    A maximum ignores NaN, and a product with 0 is spoilt by NaN and infinities only. So these alternate, and
    each seed begins with another one. Outputs begin with another one than inputs, so that copying is noticed.
    """
    dtype = numpy_dtype(plain_dtype(array.dtype))
    if is_floating(dtype):
        values = [math.nan, math.inf, -math.inf]
    else:
        most = np.iinfo(dtype).max
        values = [most, -most if dtype.kind == "i" else 1, most // 3]
    zone = np.roll(np.array(values, dtype), seed + (array.role != "in"))
    return as_bytes(np.resize(zone, GUARD_BYTES // dtype.itemsize))


def as_bytes(content: NDArray[Any]) -> Bytes:
    """The bytes of an array."""
    return np.ascontiguousarray(content).reshape(-1).view(np.uint8)
