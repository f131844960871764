"""Reference of the convolution: Fourier transforms in float64, which share nothing with the kernel."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

PATCH = 512  # rows and columns of a patch: its transform stays in a core's cache
Runs = tuple[Callable[[], object], Callable[[], object]]  # begins a run; waits for all of them


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Sum over v, u of image[y + v, x + u] * weights[v, u], shape (height, width), float64.

    A patch of the image is transformed at a time. The transform wraps around only where the filter would
    leave the patch, which none of its results does. Its error is about 1e-15 of the patch's largest sums,
    nothing beside float32's.
    """
    image, weights = inputs["image"], inputs["weights"].astype(np.float64)
    height, width = sizes["height"], sizes["width"]
    patch = max(PATCH, 2 * max(weights.shape))
    spectrum = np.conj(np.fft.rfft2(weights, (patch, patch)))
    result = np.empty((height, width))

    def convolve(corner: tuple[int, int]) -> None:
        y, x = corner
        found = np.fft.irfft2(
            np.fft.rfft2(image[y : y + patch, x : x + patch].astype(np.float64), (patch, patch)) * spectrum,
            (patch, patch),
        )
        part = result[y : y + patch - len(weights) + 1, x : x + patch - len(weights[0]) + 1]
        part[:] = found[: part.shape[0], : part.shape[1]]

    downs, acrosses = (patch - length + 1 for length in weights.shape)
    with ThreadPoolExecutor() as threads:
        list(threads.map(convolve, product(range(0, height, downs), range(0, width, acrosses))))
    return {"result": result}


def baseline_cudnn(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Runs:
    """CuDNN's convolution through PyTorch, in full float32, with the fastest algorithm that it finds."""
    import torch

    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    image, weights = (torch.tensor(inputs[name], device="cuda")[None, None] for name in ("image", "weights"))
    return lambda: torch.nn.functional.conv2d(image, weights), torch.cuda.synchronize
