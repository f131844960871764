"""Reference of the matrix product for half precision: a sample of the elements, in float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PART = 128  # of k, so that what is converted stays in a core's cache


def reference(
    inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int], indices: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Some elements, or all, of the product of a and b, shapes (m, k) and (k, n)."""
    places = np.asarray(indices["c"])
    if len(places) == sizes["m"] * sizes["n"]:  # all elements of a small product
        return {"c": (inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)).ravel()}
    rows, columns = np.divmod(places, sizes["n"])
    c = np.zeros(len(rows))
    for start in range(0, sizes["k"], _PART):
        part = slice(start, start + _PART)
        left = inputs["a"][rows, part].astype(np.float64)
        right = inputs["b"][part].take(columns, axis=1).astype(np.float64)
        c += np.einsum("ik,ki->i", left, right)
    return {"c": c}
