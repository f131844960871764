"""Searches without a model, which try the whole space: in its own order, or at random without repetition."""

from __future__ import annotations

import numpy as np

from autotune.searchers.base import ProposesAhead, TrialStream, evaluate_rows
from autotune.space import ValidSpace


class ExhaustiveSearch(ProposesAhead):
    """For small spaces, and to know the best there is; ignores the seed."""

    def search(self, space: ValidSpace, stream: TrialStream, *, seed: int) -> None:
        """Propose every configuration once; NoMoreTrials passes through."""
        evaluate_rows(space, range(len(space)), stream)


class RandomSearch(ProposesAhead):
    """The baseline of every other searcher."""

    def search(self, space: ValidSpace, stream: TrialStream, *, seed: int) -> None:
        """Propose every configuration once; NoMoreTrials passes through."""
        evaluate_rows(space, np.random.default_rng(seed).permutation(len(space)), stream)
