"""Reference of the reduction: the exact sum, and a ticket counter that ends as it began."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Runs = tuple[Callable[[], object], Callable[[], object]]  # begins a run; waits for all of them


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Sum of x, shape (1,): int32 wrapped as the hardware wraps it, anything else in float64."""
    x = inputs["x"]
    if x.dtype.kind == "i":
        total = np.sum(x, dtype=np.int64, keepdims=True).astype(x.dtype)
    else:
        total = np.sum(x, dtype=np.float64, keepdims=True)
    return {"sum": total, "ticket": inputs["ticket"]}


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
