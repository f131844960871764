"""Reference of the nested greetings: of each level, all of its threads, and the blocks of a grid of it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Each block of a level has a child of one block: only the first level has other blocks than 0."""
    levels, blocks, threads = (sizes[name] for name in ("levels", "blocks", "threads"))
    greetings = [blocks * max(1, threads >> level) for level in range(levels)]
    return {
        "greetings": np.array(greetings, np.uint32),
        "blocks_seen": np.array([blocks] + [1] * (levels - 1), np.uint32),
    }
