"""Inputs and reference of the sines and cosines: small angles are the large ones less whole turns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inputs(sizes: Mapping[str, int], rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Large angles, from 2^32 on, that every type holds; small ones with the same sine and cosine."""
    large = rng.integers(2**20, 2**24, sizes["n"]) * 2.0**12
    return {"large": large, "small": np.arctan2(np.sin(large), np.cos(large))}


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Sine and cosine of every angle, each of shape (n,)."""
    large = inputs["large"].astype(np.float64)
    return {"sines": np.sin(large), "cosines": np.cos(large)}
