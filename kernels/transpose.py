"""Reference of the transpose: nothing is computed, so the element type is kept."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """The input, shape (rows, columns), as output of shape (columns, rows)."""
    return {"output": np.ascontiguousarray(inputs["input"].T)}
