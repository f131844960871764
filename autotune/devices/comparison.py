"""When two arrays count as equal: the one rule, for the host and as a kernel for devices.

Exact where both tolerances are zero, else |actual - expected| <= atol + rtol * |expected|. NaN differs from
everything, equal infinities agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.plan import C_TYPES

Difference = tuple[int, int]  # index of the first element that differs, and how many do


def first_difference(
    actual: NDArray[Any], expected: NDArray[Any], rtol: float, atol: float
) -> Difference | None:
    """Compare two flat arrays on the host; None when they agree."""
    if rtol == 0 and atol == 0:
        differs = actual != expected
    else:
        found, wanted = actual.astype(np.float64), expected.astype(np.float64)
        with np.errstate(invalid="ignore"):
            distance = np.abs(found - wanted)
            near = np.isfinite(distance) & (distance <= atol + rtol * np.abs(wanted))
        differs = ~(near | (found == wanted))
    count = int(np.count_nonzero(differs))
    return (int(np.argmax(differs)), count) if count else None


def cuda_source(dtype: str) -> str:
    """The same rule as a CUDA kernel: `result` starts as (all ones, 0) and ends as first index and count.

    Raises KeyError for an element type that plain CUDA C++ does not have.
    """
    element = {name: text for name, text in C_TYPES.items() if name != "float16"}[dtype]
    return f"""
typedef unsigned long long Count;
extern "C" __global__ void compare(const {element} *actual, const {element} *expected, Count count,
                                   double rtol, double atol, Count *result)
{{
    const Count stride = (Count)gridDim.x * blockDim.x;
    for (Count i = (Count)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {{
        if (actual[i] == expected[i]) continue;
        const double wanted = (double)expected[i], distance = fabs((double)actual[i] - wanted);
        const bool tolerant = rtol > 0 || atol > 0;
        if (tolerant && distance <= atol + rtol * fabs(wanted) && isfinite(distance)) continue;
        atomicMin(result, i);
        atomicAdd(result + 1, 1ull);
    }}
}}
"""
