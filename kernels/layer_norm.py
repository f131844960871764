"""Reference of layer norm: numpy's, in float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

EPSILON = 1e-5


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Each row of x, shifted and scaled to mean 0 and variance 1, then by weight and bias."""
    x, weight, bias = (inputs[name].astype(np.float64) for name in ("x", "weight", "bias"))
    means = x.mean(axis=1)
    scales = 1 / np.sqrt(x.var(axis=1) + EPSILON)
    y = (x - means[:, None]) * scales[:, None] * weight + bias
    return {"y": y, "means": means, "scales": scales}
