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
    values, used, right = np.empty(len(rows)), columns[:0], np.empty(0)
    for row in np.unique(rows):
        mine = rows == row
        if not np.array_equal(used, columns[mine]):  # rows that are compared in full have the same
            used = columns[mine]
            right = scaled(inputs["B"][used], inputs["Bs"][used // sizes["group_n"]], sizes)
        values[mine] = right @ scaled(inputs["A"][row], inputs["As"][row], sizes)
    return {"C": values}


def scaled(values: Array, scales: Array, sizes: Mapping[str, int]) -> Array:
    """Rows times the scales of their blocks of columns."""
    return values.astype(np.float64) * np.repeat(scales, sizes["group_k"], axis=-1)[..., : sizes["K"]]
