"""Inputs and reference of the kernel that follows a chain."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def inputs(sizes: Mapping[str, int], rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """One cycle through all elements in random order: element i holds the index of the next."""
    order = rng.permutation(sizes["n"]).astype(np.uint32)
    following = np.empty_like(order)
    following[order] = np.roll(order, -1)
    return {"next": following}


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Where the chain that starts at element 0 ends."""
    at = 0
    for _ in range(sizes["steps"]):
        at = int(inputs["next"][at])
    return {"last": np.array([at], np.uint32)}
