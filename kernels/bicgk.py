"""Reference of the two products: in float64, which holds them exactly for the space's whole numbers."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

PART = 2**20  # elements of the matrix that a thread converts at a time: they stay in its core's cache


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Both products: q = A p, shape (rows,), and s = A' r, shape (columns,)."""
    matrix = inputs["matrix"]
    p, r = (inputs[name].astype(np.float64) for name in ("p", "r"))
    rows = max(1, PART // sizes["columns"])

    def products(start: int) -> tuple[NDArray[Any], NDArray[Any]]:
        part = matrix[start : start + rows].astype(np.float64)
        # without BLAS, whose own threads would wait for each other
        return np.einsum("ij,j->i", part, p), np.einsum("i,ij->j", r[start : start + rows], part)

    with ThreadPoolExecutor() as threads:
        q, s = zip(*threads.map(products, range(0, len(matrix), rows)), strict=True)
    return {"q": np.concatenate(q), "s": np.sum(s, axis=0)}
