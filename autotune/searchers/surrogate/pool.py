"""The configurations that a model looks at: all of a space, or of a large one a sample around the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from autotune.searchers.surrogate.encoding import Axis
from autotune.space.enumeration import Rows, find_rows

Indices = NDArray[np.intp]
LARGEST = 12_000  # candidates: with a few hundred measurements some milliseconds for each new one
CENTRES = 20  # of the fastest: their neighbours are all candidates
JUMPS = 100  # random changes of two or three parameters around each centre


def candidates(rows: Rows, axes: tuple[Axis, ...], wanted: Indices, rng: np.random.Generator) -> Indices:
    """Ascending row numbers. `wanted` rows, best first, are among them, and those near the first of them."""
    if len(rows) <= LARGEST:
        return np.arange(len(rows))
    near = _neighbours(rows, axes, wanted[:CENTRES], rng)
    anywhere = rng.integers(0, len(rows), LARGEST - min(len(near) + len(wanted), LARGEST // 2))
    return np.unique(np.concatenate([wanted, near[: LARGEST // 2], anywhere]))


def _neighbours(rows: Rows, axes: tuple[Axis, ...], centres: Indices, rng: np.random.Generator) -> Indices:
    """Valid rows that differ from a centre in one parameter, and some that differ in two or three."""
    changed = []
    for centre in rows[centres]:
        for axis in axes:
            copies = np.repeat(centre[None], len(axis.places), axis=0)
            copies[:, axis.column] = np.arange(len(axis.places))
            changed.append(copies)
        jumps = np.repeat(centre[None], JUMPS, axis=0)
        for _ in range(3):  # the third change often undoes or repeats an earlier one
            chosen = rng.integers(0, len(axes), JUMPS)
            for number, axis in enumerate(axes):
                moved = np.flatnonzero(chosen == number)
                jumps[moved, axis.column] = rng.integers(0, len(axis.places), len(moved))
        changed.append(jumps)
    if not changed:
        return np.empty(0, dtype=np.intp)
    found = find_rows(rows, np.concatenate(changed))
    return np.unique(found[found >= 0])
