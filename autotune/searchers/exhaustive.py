"""Every valid configuration, once; and the batches in which searchers that need no answers propose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.searchers.base import Evaluate
from autotune.space import Space

BATCH = 1024  # the budget is looked at before every trial: a large batch only helps to compile ahead


def evaluate_rows(space: Space, rows: Sequence[int] | NDArray[np.int64], evaluate: Evaluate) -> None:
    """Evaluate these rows of the space in their order, batch by batch; BudgetSpent passes through."""
    for start in range(0, len(rows), BATCH):
        evaluate([space.config(int(row)) for row in rows[start : start + BATCH]])


class ExhaustiveSearch:
    """Tries the whole space in its own order: the same for every seed."""

    def search(self, space: Space, evaluate: Evaluate, *, seed: int) -> None:
        """Propose every configuration once; BudgetSpent passes through."""
        evaluate_rows(space, range(len(space)), evaluate)
