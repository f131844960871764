"""Reference of the matrix product of float8: a sample of the elements, in float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(
    inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int], indices: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Elements of a times the transpose of b, shapes (m, k) and (n, k)."""
    rows, columns = np.divmod(np.asarray(indices["c"]), sizes["n"])
    needed, place = np.unique(columns, return_inverse=True)
    right = inputs["b"][needed].astype(np.float64)
    c = np.empty(len(rows))
    for row in np.unique(rows):
        mine = rows == row
        c[mine] = right[place[mine]] @ inputs["a"][row].astype(np.float64)
    return {"c": c}
