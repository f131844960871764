"""Reference of the two paths: unsigned arithmetic modulo 2^32, as the hardware does it."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

PART = 2**16  # elements, an even number


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """y, shape (n,): elements at even places after `steps` even steps, the others after as many odd ones."""
    y = inputs["x"].copy()
    with ThreadPoolExecutor() as threads:  # parts that stay in a core's cache for all the steps
        parts = [y[start : start + PART] for start in range(0, y.size, PART)]
        list(threads.map(lambda part: _advance(part, sizes["steps"]), parts))
    return {"y": y}


def _advance(part: NDArray[np.uint32], steps: int) -> None:
    """Take the steps in place; the part begins at an even place."""
    even, odd = part[0::2].copy(), part[1::2].copy()
    for _ in range(steps):
        np.multiply(even, even, out=even)
        even += np.uint32(3)
        odd ^= odd >> np.uint32(7)
        odd *= np.uint32(5)
        odd += np.uint32(1)
    part[0::2], part[1::2] = even, odd
