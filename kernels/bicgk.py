"""Reference of the two products: in float64, which holds them exactly for the space's whole numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Both products: q = A p, shape (rows,), and s = A' r, shape (columns,)."""
    matrix = inputs["matrix"].astype(np.float64)
    return {"q": matrix @ inputs["p"].astype(np.float64), "s": inputs["r"].astype(np.float64) @ matrix}
