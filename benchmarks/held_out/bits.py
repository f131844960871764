"""The reference of bits.cu."""

import numpy as np

Arrays = dict[str, np.ndarray]

BITS = np.array([bin(k).count("1") for k in range(65536)], np.uint8)


def reference(inputs: Arrays, sizes: dict[str, int]) -> Arrays:
    """The number of bits that are set."""
    return {"total": np.sum(BITS[inputs["x"].view(np.uint16)], dtype=np.uint64, keepdims=True)}
