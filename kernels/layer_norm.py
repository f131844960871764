"""Reference of layer norm: a sample of the elements, in float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

EPSILON = 1e-5


def reference(
    inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int], indices: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Rows of x, shifted and scaled to mean 0 and variance 1, then by weight and bias."""
    rows, columns = np.divmod(np.asarray(indices["y"]), sizes["n"])
    moments = {row: _moments(inputs["x"][row]) for row in {*rows, *indices["means"], *indices["scales"]}}
    means, scales = (np.array([moments[row][part] for row in rows]) for part in (0, 1))
    weight, bias = (inputs[name].astype(np.float64) for name in ("weight", "bias"))
    return {
        "y": (inputs["x"][rows, columns].astype(np.float64) - means) * scales * weight[columns]
        + bias[columns],
        "means": np.array([moments[row][0] for row in indices["means"]]),
        "scales": np.array([moments[row][1] for row in indices["scales"]]),
    }


def _moments(row: NDArray[Any]) -> tuple[float, float]:
    """Mean and scale of a row."""
    values = row.astype(np.float64)
    return float(values.mean()), float(1 / np.sqrt(values.var() + EPSILON))
