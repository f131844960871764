"""Reference of the transpose: nothing is computed, so the element type is kept."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

STRIP = 16  # rows that are copied together at least: they fill a line of the cache in each row of the output
PART = 2**16  # elements that a thread copies at least: a narrow input has many rows
Runs = tuple[Callable[[], object], Callable[[], object]]  # begins a run; waits for all of them


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """The input, shape (rows, columns), as output of shape (columns, rows)."""
    source = inputs["input"]
    output = np.empty(source.shape[::-1], source.dtype)
    strip = max(STRIP, PART // source.shape[1])

    def copy(start: int) -> None:
        output[:, start : start + strip] = source[start : start + strip].T

    with ThreadPoolExecutor() as threads:
        list(threads.map(copy, range(0, len(source), strip)))
    return {"output": output}


def baseline_numpy(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Runs:
    """Numpy's copy of the transposed view, on one thread."""
    turned = inputs["input"].T
    output = np.empty(turned.shape, turned.dtype)
    return lambda: np.copyto(output, turned), lambda: None


def baseline_torch(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Runs:
    """PyTorch's copy of the transposed view."""
    import torch

    turned = torch.tensor(inputs["input"], device="cuda").t()
    output = torch.empty(turned.shape, dtype=turned.dtype, device="cuda")
    return lambda: output.copy_(turned), torch.cuda.synchronize
