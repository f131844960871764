"""Exhaustive search, and evaluation of rows in batches for searchers that need no results in between."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.searchers.base import Evaluate, stream
from autotune.space import Space

BATCH = 1024  # the budget is checked before every trial, so a large batch only helps to work ahead


def evaluate_rows(space: Space, rows: Sequence[int] | NDArray[np.int64], evaluate: Evaluate) -> None:
    """Evaluate rows of the space in this order, in batches; BudgetSpent passes through."""
    trials, under_way = stream(evaluate), 0
    for start in range(0, len(rows), BATCH):
        batch = [space.config(int(row)) for row in rows[start : start + BATCH]]
        trials.submit(batch)
        under_way += len(batch)
        while under_way > BATCH // 2:  # several devices stay busy
            under_way -= len(trials.collect())
    while under_way:
        under_way -= len(trials.collect())


class ExhaustiveSearch:
    """Tries the whole space in its own order; ignores the seed."""

    def search(self, space: Space, evaluate: Evaluate, *, seed: int) -> None:
        """Propose every configuration once; BudgetSpent passes through."""
        evaluate_rows(space, range(len(space)), evaluate)
