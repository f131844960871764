"""Reference of products of float8 with scales by block: a sample of the elements, in float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(
    inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int], indices: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Elements of A times the transpose of B, each block of columns times both scales."""
    rows, columns = np.divmod(np.asarray(indices["C"]), sizes["N"])
    width = sizes["group_k"]
    values = np.empty(len(rows))
    for row in np.unique(rows):
        mine = np.flatnonzero(rows == row)
        left = inputs["A"][row].astype(np.float64) * np.repeat(inputs["As"][row], width)[: sizes["K"]]
        scales = np.repeat(inputs["Bs"][columns[mine] // sizes["group_n"]], width, axis=1)
        values[mine] = (inputs["B"][columns[mine]].astype(np.float64) * scales[:, : sizes["K"]]) @ left
    return {"C": values}
