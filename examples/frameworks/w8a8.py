"""Reference of products of float8 with scales by block: a sample of the elements, in float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def reference(
    inputs: Mapping[str, Array], sizes: Mapping[str, int], indices: Mapping[str, Array]
) -> dict[str, Array]:
    """Elements of A times the transpose of B, each block of columns times both scales."""
    rows, columns = np.divmod(np.asarray(indices["C"]), sizes["N"])
    tokens, left_of = np.unique(rows, return_inverse=True)
    weights, right_of = np.unique(columns, return_inverse=True)
    left = scaled(inputs["A"][tokens], inputs["As"][tokens], sizes)
    right = scaled(inputs["B"][weights], inputs["Bs"][weights // sizes["group_n"]], sizes)
    if len(tokens) * len(weights) <= len(rows):  # all pairs: an output that is compared in full
        return {"C": (left @ right.T)[left_of, right_of]}
    return {"C": np.einsum("ij,ij->i", left[left_of], right[right_of])}


def scaled(values: Array, scales: Array, sizes: Mapping[str, int]) -> Array:
    """Rows times the scales of their blocks of columns."""
    return values.astype(np.float64) * np.repeat(scales, sizes["group_k"], axis=1)[:, : sizes["K"]]
