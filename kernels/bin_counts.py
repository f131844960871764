"""Inputs and reference of the histogram."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inputs(sizes: Mapping[str, int], rng: np.random.Generator, data: str) -> dict[str, NDArray[Any]]:
    """Values below `bins`: all equally often, half of them 0 and others ever rarer, or all the last."""
    n, bins = sizes["n"], sizes["bins"]
    if data == "even":
        values = rng.integers(0, bins, n, dtype=np.uint32)
    elif data == "skewed":
        values = np.minimum(rng.geometric(0.5, n) - 1, bins - 1).astype(np.uint32)
    else:
        values = np.full(n, bins - 1, np.uint32)
    return {"values": values}


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """How often each value occurs, shape (bins,)."""
    counts = np.bincount(inputs["values"], minlength=sizes["bins"])
    return {"counts": counts.astype(np.uint32)}
