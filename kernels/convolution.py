"""Reference of the convolution: Fourier transforms in float64, which share nothing with the kernel."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Runs = tuple[Callable[[], object], Callable[[], object]]  # begins a run; waits for all of them


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Sum over v, u of image[y + v, x + u] * weights[v, u], shape (height, width), float64.

    The transform wraps around only where the filter would leave the image, which no result does. Its
    error is about 1e-15 of the image's largest sums, nothing beside float32's.
    """
    image, weights = (inputs[name].astype(np.float64) for name in ("image", "weights"))
    spectrum = np.fft.rfft2(image) * np.conj(np.fft.rfft2(weights, image.shape))
    return {"result": np.fft.irfft2(spectrum, image.shape)[: sizes["height"], : sizes["width"]]}


def baseline_cudnn(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Runs:
    """CuDNN's convolution through PyTorch, in full float32, with the fastest algorithm that it finds."""
    import torch

    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    image, weights = (torch.tensor(inputs[name], device="cuda")[None, None] for name in ("image", "weights"))
    return lambda: torch.nn.functional.conv2d(image, weights), torch.cuda.synchronize
