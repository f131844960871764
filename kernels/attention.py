"""Reference of attention: a sample of the elements, in float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(
    inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int], indices: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Elements of softmax(q k^T / sqrt(d)) v for each head; all have the shape (heads, n, d)."""
    n, d = sizes["n"], sizes["d"]
    queries, lanes = np.divmod(np.asarray(indices["out"]), d)
    out = np.empty(len(queries))
    for head in np.unique(queries // n):
        k, v = (inputs[name][head].astype(np.float64) for name in ("k", "v"))
        mine = queries // n == head
        q = inputs["q"][head][queries[mine] % n].astype(np.float64)
        scores = q @ k.T / np.sqrt(d)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        out[mine] = np.sum(powers * v[:, lanes[mine]].T, axis=1) / powers.sum(axis=1)
    return {"out": out}
