"""The reference of spmv.cu."""

import numpy as np

Arrays = dict[str, np.ndarray]


def inputs(sizes: dict[str, int], rng: np.random.Generator) -> Arrays:
    """Rows of random lengths in random places."""
    rows, nnz = sizes["rows"], sizes["nnz"]
    lengths = rng.multinomial(nnz, np.full(rows, 1 / rows))
    return {"starts": np.r_[0, np.cumsum(lengths)], "columns": rng.integers(0, rows, nnz)}


def reference(inputs: Arrays, sizes: dict[str, int]) -> Arrays:
    """The product of a sparse matrix and a vector."""
    products = inputs["values"].astype(np.float64) * inputs["x"][inputs["columns"]]
    sums = np.r_[0, np.cumsum(products)]
    starts = inputs["starts"].astype(np.int64)
    return {"y": sums[starts[1:]] - sums[starts[:-1]]}
