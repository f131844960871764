"""Random search without repetition: the baseline of every other searcher."""

from __future__ import annotations

import numpy as np

from autotune.searchers.base import ProposesAhead, TrialStream, evaluate_rows
from autotune.space import ValidSpace


class RandomSearch(ProposesAhead):
    """Tries the whole space in random order."""

    def search(self, space: ValidSpace, stream: TrialStream, *, seed: int) -> None:
        """Propose every configuration once; NoMoreTrials passes through."""
        evaluate_rows(space, np.random.default_rng(seed).permutation(len(space)), stream)
