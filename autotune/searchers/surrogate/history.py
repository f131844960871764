"""The trials of a search so far, as arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.core.trials import Trial
from autotune.searchers.surrogate.encoding import Floats, Indices

MIN_SCORE = 1e-9  # keeps logarithms finite
MIN_S = 1e-6


class History:
    """Evaluated rows of the space, with the logarithms of score and cost."""

    def __init__(self, *, has_costs: bool = True) -> None:
        """Begin without trials. Without `has_costs`, the cost of none is known."""
        self._has_costs = has_costs
        self._rows: list[int] = []
        self._log_score: list[float] = []
        self._log_cost: list[float] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, rows: Sequence[int], trials: Sequence[Trial]) -> None:
        """Append the trial of each row."""
        for row, trial in zip(rows, trials, strict=True):
            self._rows.append(row)
            self._log_score.append(math.nan if trial.score is None else math.log(max(trial.score, MIN_SCORE)))
            self._log_cost.append(
                math.log(max(trial.cost_s, MIN_S)) if self._has_costs and trial.cost_s > 0 else math.nan
            )

    @property
    def rows(self) -> Indices:
        """Rows of the space, in the order of evaluation."""
        return np.array(self._rows, dtype=np.intp)

    @property
    def log_score(self) -> Floats:
        """Natural logarithm of each time in milliseconds, or other score; nan for a failure."""
        return np.array(self._log_score)

    @property
    def log_cost(self) -> Floats:
        """Natural logarithm of the seconds that each trial took; nan where unknown."""
        return np.array(self._log_cost)

    @property
    def failed(self) -> NDArray[np.bool_]:
        """A mask of the trials without a score."""
        return np.isnan(self.log_score)


def training_sample(fastest_first: Indices, count: int, rng: np.random.Generator) -> Indices:
    """At most `count` results to fit a model to: the fastest half and a sample of the others."""
    if len(fastest_first) <= count:
        return fastest_first
    half = count // 2
    return np.concatenate([fastest_first[:half], rng.choice(fastest_first[half:], half, replace=False)])
