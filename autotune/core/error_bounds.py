"""Bounds of rounding errors of long sums, relative to the sum of the terms' magnitudes.

Sources: for any order of summation, N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition
(2002), section 3.1; for rounding errors that are independent and zero on average, N. J. Higham and T. Mary, A
new approach to probabilistic rounding error analysis, SIAM Journal on Scientific Computing 41 (2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from autotune.errors import ExpressionError

WORST, PROBABLE = "worst", "probable"
DATA = "data"  # the magnitude that the reference computes on the data
# Half the distance of 1 to the next number, the smallest positive number, the smallest normal number.
UNIT_ROUNDOFF = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "float64": 2**-53}
SMALLEST = {"float16": 2**-24, "bfloat16": 2**-133, "float32": 2**-149, "float64": 2**-1074}
SMALLEST_NORMAL = {"float16": 2**-14, "bfloat16": 2**-126, "float32": 2**-126, "float64": 2**-1022}
# The types of 16 bits: their last bit is far above what calculations in float32 lose.
HALF = ("float16", "bfloat16")
HALF_RTOL = "1e-2"  # more than two roundings to any of them
# In standard deviations: a sum of 10,000 terms exceeds them once in 10^17 times.
_DEVIATIONS = 10.0


@dataclass(frozen=True)
class ErrorSpec:
    """The bound of one output's error: at most `operations` roundings in the type `dtype` for each element.

    `operations` is an expression; so is `magnitude`, unless it is DATA. An empty `dtype` is the output's own.
    """

    operations: str
    dtype: str = ""
    kind: str = WORST
    magnitude: str = DATA


def accumulated(operations: int, dtype: str, kind: str) -> float:
    """The bound of the error of so many roundings in a row, relative to the sum of magnitudes.

    Raises ExpressionError if there is no bound: for more roundings than the type resolves.
    """
    unit = UNIT_ROUNDOFF[dtype]
    if kind == PROBABLE:
        exponent = _DEVIATIONS * math.sqrt(operations) * unit + operations * unit**2 / (1 - unit)
        if exponent < 1:
            return math.expm1(exponent)
    elif operations * unit < 1:
        return operations * unit / (1 - operations * unit)
    advice = "; bound: probable allows more" if kind == WORST else ""
    raise ExpressionError(
        f"error: {operations:,} roundings in {dtype} have no bound below the sum itself: count the longest "
        f"chain of additions only{advice}"
    )


def rtol_by_type(wider: str) -> str:
    """The `rtol` of a space file that allows two roundings to a type of 16 bits; else it is `wider`."""
    names = ", ".join(f'"{dtype}"' for dtype in HALF)
    return f"'{HALF_RTOL} if DTYPE in ({names}) else {wider}'"


def neighbours(dtype: str) -> tuple[float, float]:
    """The relative and absolute tolerance between two roundings of one number."""
    unit = UNIT_ROUNDOFF[dtype]
    return 2 * unit / (1 - unit), SMALLEST[dtype]
