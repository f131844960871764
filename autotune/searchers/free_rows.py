"""Which valid rows are left to ask for, and how far they are from a point that is not one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class FreeRows:
    """The valid rows that have not been asked for."""

    def __init__(self, rows: NDArray[Any], rng: np.random.Generator, *, ordered: bool) -> None:
        self.count = len(rows)
        self._rng = rng
        self._taken = np.zeros(len(rows), dtype=bool)
        self._ordered = ordered
        self._columns = np.ascontiguousarray(rows.T)  # a parameter's positions lie together: fast to scan

    def take_any(self) -> int:
        """One of them, uniformly."""
        return self._take(np.flatnonzero(~self._taken))

    def take_nearest(self, positions: Sequence[int]) -> int:
        """The one nearest to a point that may be invalid or taken; one at random of those equally near.

        Distance: the number of parameters that differ (Hamming), or, where positions are ordered, the sum
        of the differences as shares of each parameter's range. Takes a millisecond per million values.
        """
        distance = np.zeros(len(self._taken), dtype=np.float32)
        for column, position in zip(self._columns, positions, strict=True):
            if self._ordered:
                distance += np.abs(column.astype(np.float32) - position) / max(1, int(column.max()))
            else:
                distance += column != position
        distance[self._taken] = np.inf
        return self._take(np.flatnonzero(distance == distance.min()))

    def _take(self, candidates: NDArray[np.int64]) -> int:
        row = int(self._rng.choice(candidates))
        self._taken[row] = True
        self.count -= 1
        return row
