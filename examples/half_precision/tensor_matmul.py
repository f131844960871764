"""Reference of the matrix product on tensor cores: numpy's, in float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """The product of a and b, shapes (m, k) and (k, n), in float64."""
    return {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)}
