"""Reference of the reduction: the exact sum, and a ticket counter that ends as it began."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

PART = 2**22  # elements that a thread adds up at a time
Runs = tuple[Callable[[], object], Callable[[], object]]  # begins a run; waits for all of them


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Sum of x, shape (1,): int32 wrapped as the hardware wraps it, anything else in float64."""
    x = inputs["x"]
    total = _sum(x, np.int64 if x.dtype.kind == "i" else np.float64)
    if x.dtype.kind == "i":
        total = total.astype(x.dtype)
    return {"sum": total, "ticket": inputs["ticket"]}


def _sum(x: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """The sum in a wider type, shape (1,): numpy takes one thread, which is slow for 2^30 elements."""
    parts = [x[start : start + PART] for start in range(0, x.size, PART)]
    with ThreadPoolExecutor() as threads:
        sums = list(threads.map(partial(np.sum, dtype=dtype), parts))
    return np.asarray(np.sum(sums, dtype=dtype, keepdims=True))


def baseline_numpy(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Runs:
    """Numpy's sum in the elements' own type, on one thread."""
    x = inputs["x"]
    return lambda: x.sum(dtype=x.dtype), lambda: None


def baseline_torch(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Runs:
    """PyTorch's sum."""
    import torch

    x = torch.tensor(inputs["x"], device="cuda")
    return lambda: torch.sum(x, dtype=x.dtype), torch.cuda.synchronize


def baseline_cub(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Runs:
    """CUB's sum through CuPy."""
    import cupy

    cupy._core.set_reduction_accelerators(["cub"])
    x = cupy.asarray(inputs["x"])
    return lambda: x.sum(dtype=x.dtype), cupy.cuda.Device().synchronize
