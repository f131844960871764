"""The reference of hist.cu."""

import numpy as np

Arrays = dict[str, np.ndarray]


def reference(inputs: Arrays, sizes: dict[str, int]) -> Arrays:
    """How often each byte occurs."""
    return {"counts": np.bincount(inputs["x"], minlength=256)}
