"""Matrices for spmv.cu and their products: a band, or rows whose lengths follow a power law."""

import numpy as np


def inputs(sizes, rng, data):
    rows, elements = sizes["rows"], sizes["rows"] * sizes["per_row"]
    if data == "banded":
        lengths = np.full(rows, sizes["per_row"])
        columns = np.arange(rows)[:, None] + np.arange(sizes["per_row"])  # wraps around at the last column
    else:
        shares = 1.0 / np.arange(1, rows + 1)  # Zipf's law: the longest row has some percent of all elements
        lengths = rng.permutation(rng.multinomial(elements, shares / shares.sum()))
        columns = rng.integers(0, rows, elements)
    return {
        "starts": np.concatenate(([0], np.cumsum(lengths))),
        "columns": columns.reshape(-1) % rows,
        "values": rng.random(elements, np.float32),
        "x": rng.random(rows, np.float32),
    }


def reference(inputs, sizes):
    products = inputs["values"].astype(np.float64) * inputs["x"][inputs["columns"]]
    before = np.concatenate(([0.0], np.cumsum(products)))
    return {"y": np.diff(before[inputs["starts"]])}
