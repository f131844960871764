"""Inputs and reference of the reductions by an operator: an array for each that has the same result.

A sum and a product wrap modulo 2^32, where odd numbers have an inverse; so every element counts. At some
sizes the result is the largest or the smallest number: a minimum or a maximum must start from that number.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

MODULUS = 2**32


def inputs(sizes: Mapping[str, int], rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Random elements, one of which is chosen so that the result is `wanted`."""
    n = sizes["n"]
    place = int(rng.integers(n))
    extremes = {1: MODULUS - 1, 3: 0}
    wanted = np.array([extremes.get(n % 4, rng.integers(MODULUS))], np.uint32)
    addends = rng.integers(0, MODULUS, n, dtype=np.uint32)
    addends[place] = 0
    addends[place] = (wanted - np.sum(addends, dtype=np.uint32))[0]
    factors = rng.integers(0, MODULUS, n, dtype=np.uint32) | np.uint32(1)
    factors[place] = 1
    others = int(np.multiply.reduce(factors, dtype=np.uint32))
    factors[place] = int(wanted[0]) * pow(others, -1, MODULUS) % MODULUS
    above = rng.integers(int(wanted[0]), MODULUS, n, dtype=np.uint32)
    below = rng.integers(0, int(wanted[0]), n, dtype=np.uint32, endpoint=True)
    above[place] = below[place] = wanted[0]
    with_bits, without_bits = np.full(n, MODULUS - 1, np.uint32), np.zeros(n, np.uint32)
    for bit in np.uint32(1) << np.arange(32, dtype=np.uint32):  # one element decides on each
        one = rng.integers(n)
        with_bits[one] &= ~(bit & ~wanted[0])
        without_bits[one] |= bit & wanted[0]
    flips = rng.integers(0, MODULUS, n, dtype=np.uint32)
    flips[place] = 0
    flips[place] = wanted[0] ^ np.bitwise_xor.reduce(flips)
    return {
        "wanted": wanted,
        "addends": addends,
        "factors": factors,
        "above": above,
        "below": below,
        "with_bits": with_bits,
        "without_bits": without_bits,
        "flips": flips,
    }


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """What every operator makes of its array, shape (1,)."""
    return {"result": inputs["wanted"]}
