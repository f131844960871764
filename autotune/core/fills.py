"""Fills of random inputs, and the special values that they may contain.

They are not in `space`, which processes of a device do not import.
"""

from __future__ import annotations

import math

RANDOM_FILLS = ("integers", "uniform", "normal")
SPECIAL_VALUES = {
    "nan": (math.nan,),
    "infinities": (math.inf, -math.inf),
    "signed_zeros": (-0.0, 0.0),
    "halves": (0.5, -1.5),
}
