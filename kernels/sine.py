"""Reference of the sines and cosines: in float64, of the angle that float32 makes of scale * x."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Sine and cosine of every angle, each of shape (n,)."""
    angle = (inputs["x"] * np.float32(sizes["largest"])).astype(np.float64)
    return {"sines": np.sin(angle), "cosines": np.cos(angle)}
