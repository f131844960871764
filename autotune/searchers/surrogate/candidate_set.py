"""The configurations that a model predicts: the whole space, or in a large space a part around the best."""

from __future__ import annotations

import numpy as np

from autotune.searchers.surrogate.encoding import Encoding, Indices
from autotune.space.enumeration import find_rows

MAX_CANDIDATES = 12_000  # a few hundred measurements then cost some milliseconds each
CENTRES = 20  # fastest configurations whose neighbours are all candidates
JUMPS = 100  # random changes of two or three parameters around each centre


def candidate_set(
    encoding: Encoding, required: Indices, rng: np.random.Generator, limit: int = MAX_CANDIDATES
) -> Indices:
    """Row numbers of the candidates, ascending: `required` (best first), their neighbours and random rows."""
    size = len(encoding.space)
    if size <= limit:
        return np.arange(size)
    near = _neighbours(encoding, required[:CENTRES], rng)
    count = limit - min(len(near) + len(required), limit // 2)
    anywhere = rng.integers(0, size, count)
    return np.unique(np.concatenate([required, near[: limit // 2], anywhere]))


def _neighbours(encoding: Encoding, centres: Indices, rng: np.random.Generator) -> Indices:
    """All valid rows that differ from a centre in one parameter, and some that differ in two or three."""
    axes, changed = encoding.parameter_axes, []
    fastest = encoding.space.rows[centres]
    for axis in axes:
        copies = np.repeat(fastest, len(axis.coordinates), axis=0)
        copies[:, axis.column] = np.tile(np.arange(len(axis.coordinates)), len(fastest))
        changed.append(copies)
    jumps = np.repeat(fastest, JUMPS, axis=0)
    for _ in range(3):  # the third change often undoes or repeats an earlier one
        chosen = rng.integers(0, len(axes), len(jumps))
        for number, axis in enumerate(axes):
            moved = np.flatnonzero(chosen == number)
            jumps[moved, axis.column] = rng.integers(0, len(axis.coordinates), len(moved))
    rows = find_rows(encoding.space.rows, np.concatenate([*changed, jumps]))
    return np.unique(rows[rows >= 0])
