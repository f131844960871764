"""Reference of the calcium release: the model's equations as they are written, in float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

STATES = 16
# The model's constants, as the space hands them to the kernel; every precision holds them exactly.
P1, P2, P3, P4, P5, P6, P7, K = 0.0625, 0.921875, 0.84375, 3.5, 0.5, 0.03125, 1.5, 20.0


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Rates and target states, shape (3, n): leaving the state, one channel more open, one channel less."""
    calcium, store, g = inputs["columns"].astype(np.float64)
    up, down = inputs["up"].astype(np.float64), inputs["down"].astype(np.float64)
    state = inputs["states"]
    closed = np.exp(P1 * ((K - g) * P2 + (1 - g) * P3))
    open_ = np.exp(P1 * (g * P3 - (K - g - 1) * P2))
    opening = calcium**P4 * (P5 * store + P6) * P7 * open_
    rates = (
        opening * up[0, state] + closed * down[0, state],
        opening * up[1, state],
        closed * down[1, state],
    )
    targets = (state, np.minimum(state + 1, STATES - 1), np.maximum(state - 1, 0))
    return {"rates": np.stack(rates), "targets": np.stack(targets)}
