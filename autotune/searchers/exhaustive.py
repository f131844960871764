"""Exhaustive search: for small spaces, and to know the best there is."""

from __future__ import annotations

from autotune.searchers.base import ProposesAhead, TrialStream, evaluate_rows
from autotune.space import ValidSpace


class ExhaustiveSearch(ProposesAhead):
    """Tries the whole space in its own order; ignores the seed."""

    def search(self, space: ValidSpace, stream: TrialStream, *, seed: int) -> None:
        """Propose every configuration once; NoMoreTrials passes through."""
        evaluate_rows(space, range(len(space)), stream)
