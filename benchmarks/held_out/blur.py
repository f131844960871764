"""The reference of blur.cu."""

import numpy as np

Arrays = dict[str, np.ndarray]


def reference(inputs: Arrays, sizes: dict[str, int]) -> Arrays:
    """A filter of 3 x 3 pixels."""
    image, weights = inputs["image"].astype(np.float64), inputs["weights"].astype(np.float64)
    h, w = image.shape
    padded = np.pad(image, 1)
    result = np.zeros((h, w))
    for dy in range(3):
        for dx in range(3):
            result += weights[dy, dx] * padded[dy : dy + h, dx : dx + w]
    return {"result": result}
