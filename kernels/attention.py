"""Reference of attention: numpy's, in float32 for each head."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """softmax(q k^T / sqrt(d)) v for each head; q, k and v have the shape (heads, n, d)."""
    out = np.empty(inputs["q"].shape, np.float32)
    for head, result in enumerate(out):
        q, k, v = (inputs[name][head].astype(np.float32) for name in ("q", "k", "v"))
        scores = q @ k.T / np.float32(sizes["d"] ** 0.5)
        scores -= scores.max(axis=1, keepdims=True)
        powers = np.exp(scores, out=scores)
        result[:] = powers @ v / powers.sum(axis=1, keepdims=True)
    return {"out": out}
