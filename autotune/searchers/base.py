"""The one method every searcher has, and what it is handed.

A searcher proposes configurations and reads trials. It never sees kernels, devices, journals or caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from autotune.model import Config
from autotune.space import Space
from autotune.trials import Trial

Evaluate = Callable[[Sequence[Config]], list[Trial]]
"""Answers with one trial per configuration, in order. A configuration outside the space is answered
PRUNED and costs nothing, one asked before costs nothing. Raises BudgetSpent: let it pass through."""


class Searcher(Protocol):
    """A way to choose which configurations to try."""

    def search(self, space: Space, evaluate: Evaluate, *, seed: int) -> None:
        """Propose until there is nothing left to propose, or `evaluate` raises BudgetSpent."""
        ...
