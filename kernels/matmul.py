"""Reference of the matrix product: numpy's."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDE_TO = 1024  # of k
Runs = tuple[Callable[[], object], Callable[[], object]]  # begins a run; waits for all of them


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """The product of a and b, shapes (m, k) and (k, n).

    In float64, whose error is nothing beside float32's. Longer sums are in float32, in a fraction of the
    time: a BLAS library adds them up in parts, and is off by a fiftieth of what the space allows.
    """
    dtype = np.float64 if sizes["k"] <= WIDE_TO else np.float32
    return {"c": inputs["a"].astype(dtype, copy=False) @ inputs["b"].astype(dtype, copy=False)}


def baseline_numpy(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Runs:
    """Numpy's product in float32: its BLAS library on one thread."""
    a, b = inputs["a"], inputs["b"]
    return lambda: a @ b, lambda: None


def baseline_numpy_all_cores(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Runs:
    """The same with all threads of the BLAS library."""
    return baseline_numpy(inputs, sizes)


def baseline_cublas(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Runs:
    """CuBLAS through PyTorch, in full float32."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = (torch.tensor(inputs[name], device="cuda") for name in ("a", "b"))
    c = torch.empty(a.shape[0], b.shape[1], device="cuda")
    return lambda: torch.matmul(a, b, out=c), torch.cuda.synchronize
