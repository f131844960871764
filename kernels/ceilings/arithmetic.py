"""Reference of the multiplying and adding kernel."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """The first number, unchanged, from every thread."""
    return {"result": np.full(sizes["threads"], inputs["start"][0])}
