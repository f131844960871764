"""Reference of the sum of a vector: numpy's, in float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """The sum of x, shape (1,)."""
    return {"total": np.sum(inputs["x"], dtype=np.float64, keepdims=True)}
