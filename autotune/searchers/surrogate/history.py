"""What a search has found out so far, as columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.core.trials import Trial
from autotune.searchers.surrogate.encoding import Floats

MIN_SCORE = 1e-9  # keeps logarithms finite
MIN_S = 1e-6


class History:
    """Rows of the space with the logs of their time or other score (nan: failed) and cost (nan: unknown)."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._log_ms: list[float] = []
        self._log_cost: list[float] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, rows: Sequence[int], trials: Sequence[Trial]) -> None:
        """Note what became of each row."""
        for row, trial in zip(rows, trials, strict=True):
            self._rows.append(row)
            self._log_ms.append(math.nan if trial.score is None else _log(trial.score, MIN_SCORE))
            self._log_cost.append(_log(trial.cost_s, MIN_S) if trial.cost_s > 0 else math.nan)

    @property
    def rows(self) -> NDArray[np.intp]:
        """Rows of the space, in the order in which they were tried."""
        return np.array(self._rows, dtype=np.intp)

    @property
    def log_ms(self) -> Floats:
        """Natural logarithm of each time in milliseconds, or other score; nan for a failure."""
        return np.array(self._log_ms)

    @property
    def log_cost(self) -> Floats:
        """Natural logarithm of the seconds that each took to find out; nan where that is not known."""
        return np.array(self._log_cost)

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which of them have no time."""
        return np.isnan(self.log_ms)


def _log(value: float, smallest: float) -> float:
    return math.log(max(value, smallest))
