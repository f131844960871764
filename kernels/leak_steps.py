"""Inputs and reference of the calcium release term by term: every step stores 1, 2, 3 and so on."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The model's constants, as the space hands them to the kernel; every precision holds them exactly.
P1, P2, P3, P4, P5, P6, P7, K = 0.0625, 0.921875, 0.84375, 3.5, 0.5, 0.03125, 1.5, 20.0
STATES = 16


def inputs(sizes: Mapping[str, int], rng: np.random.Generator, variant: str = "") -> dict[str, NDArray[Any]]:
    """The units, the tables, and for each step what its product has to be scaled by.

    All units are alike in the variant `one_unit`, and in the last state in `last_state`.
    """
    n = sizes["n"]
    units = rng.uniform(0.25, 4, (3, n)).astype(np.float32).astype(np.float64)
    tables = rng.uniform(0.5, 2, 2 * STATES).astype(np.float32).astype(np.float64)
    states = rng.integers(0, STATES, n)
    if variant == "one_unit":
        units[:], states[:] = units[:, :1], states[0]
    elif variant == "last_state":
        states[:] = STATES - 1
    calcium, store, g = units
    closed = P1 * ((K - g) * P2 + (1 - g) * P3)
    terms = {
        "load": 1.0,
        "product": P1,
        "power": calcium**P4,
        "closed_argument": closed,
        "closed": np.exp(closed) / closed,
        "open": np.exp(P1 * (g * P3 - (K - g - 1) * P2)) * (P5 * store + P6) * P7,
        "all_terms": tables[states] * tables[STATES + states],
    }
    scales = {}
    left = _stored(n)
    for name, term in terms.items():
        left = left / term
        scales[name] = left
    coefficients = np.array([P1, P2, P3, P4, P5, P6, P7, K])
    return {"units": units, "states": states, "tables": tables, "coefficients": coefficients, **scales}


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """1, 2, 3 and so on, whatever the step."""
    return {"result": _stored(sizes["n"])}


def _stored(n: int) -> NDArray[np.float64]:
    return np.arange(1, n + 1, dtype=np.float64)
