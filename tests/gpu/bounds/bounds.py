"""Reference of the kernels that are bound by one thing."""

import numpy as np


def reference(inputs, sizes):
    """They all leave 1."""
    return {"result": np.ones(sizes["threads"], np.int32)}
