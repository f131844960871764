"""Exhaustive search, and evaluation of rows in batches for searchers that need no results in between."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.searchers.base import Evaluate
from autotune.space import Space

BATCH = 1024  # the budget is checked before every trial, so a large batch only helps to compile ahead


def evaluate_rows(space: Space, rows: Sequence[int] | NDArray[np.int64], evaluate: Evaluate) -> None:
    """Evaluate rows of the space in this order, in batches; BudgetSpent passes through."""
    for start in range(0, len(rows), BATCH):
        evaluate([space.config(int(row)) for row in rows[start : start + BATCH]])


class ExhaustiveSearch:
    """Tries the whole space in its own order; ignores the seed."""

    def search(self, space: Space, evaluate: Evaluate, *, seed: int) -> None:
        """Propose every configuration once; BudgetSpent passes through."""
        evaluate_rows(space, range(len(space)), evaluate)
