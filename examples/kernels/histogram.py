"""Bytes to count, and how often each value occurs."""

import numpy as np


def inputs(sizes, rng, data):
    if data == "even":
        return {"values": rng.integers(0, 256, sizes["n"], np.uint8)}
    return {"values": np.minimum(rng.geometric(0.3, sizes["n"]) + 96, 255)}  # a, b, c, ...: ever rarer


def reference(inputs, sizes):
    return {"counts": np.bincount(inputs["values"], minlength=256)}
