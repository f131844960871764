"""Reference of the matrix addition."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Runs = tuple[Callable[[], object], Callable[[], object]]  # begins a run; waits for all of them


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """The sum, shape (rows, columns), in float64."""
    return {"c": np.add(inputs["a"], inputs["b"], dtype=np.float64)}


def baseline_numpy(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Runs:
    """Numpy's sum in float32, into an array that is there already, on one thread."""
    a, b = inputs["a"], inputs["b"]
    c = np.empty_like(a)
    return lambda: np.add(a, b, out=c), lambda: None


def baseline_torch(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Runs:
    """PyTorch's sum, into a tensor that is there already."""
    import torch

    a, b = (torch.tensor(inputs[name], device="cuda") for name in ("a", "b"))
    c = torch.empty_like(a)
    return lambda: torch.add(a, b, out=c), torch.cuda.synchronize
