"""Reference of the writing kernel."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """The number of the last pass in every element."""
    return {"result": np.full(sizes["n"], sizes["passes"], np.int32)}
