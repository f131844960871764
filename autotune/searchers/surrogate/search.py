"""The default search: Bayesian optimisation of the whole space, started from results of other devices."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from autotune.core.records import Config
from autotune.searchers.base import NoTrials, PriorResults, ProposesAhead, TrialStream
from autotune.searchers.surrogate.blas_threads import load_scipy, one_blas_thread
from autotune.searchers.surrogate.encoding import Encoding
from autotune.searchers.surrogate.model import ModelFitter
from autotune.searchers.surrogate.run import Run
from autotune.searchers.whole_space import RandomSearch
from autotune.space import ValidSpace

DESIGN_SIZE = 8  # configurations of the initial design, which compile while the default is prepared
MAX_PENDING = 15  # trials: about as many as compilers


class SurrogateSearch(ProposesAhead):
    """Tries the greatest expected improvement per second by a Gaussian process over all configurations."""

    def __init__(self, priors: Collection[PriorResults] = (), *, stop_when_unlikely: bool = False) -> None:
        """Start from results of other devices and problems, which may grow during the search.

        With `stop_when_unlikely`, return when two models in a row find an improvement unlikely. On one
        device, nothing is then chosen while trials are pending.
        """
        self._priors = priors
        self._stop_when_unlikely = stop_when_unlikely

    def opening(self, space: ValidSpace, *, seed: int) -> list[Config]:
        """As other searchers' openings; none if priors must be learnt first, which takes time."""
        if self._priors:
            return []
        if len(space) <= DESIGN_SIZE:
            return super().opening(space, seed=seed)
        rows = Run(Encoding(space), NoTrials(), np.random.default_rng(seed)).design(DESIGN_SIZE)
        return [space.config(row) for row in rows]

    def get_ready(self) -> None:
        """Load scipy, which the first proposals do not need."""
        load_scipy()

    def search(self, space: ValidSpace, stream: TrialStream, *, seed: int) -> None:
        """Propose every configuration once, the most promising first; NoMoreTrials passes through."""
        if len(space) <= DESIGN_SIZE:
            RandomSearch().search(space, stream, seed=seed)
            return
        with one_blas_thread():
            rng = np.random.default_rng(seed)
            encoding = Encoding(space)
            fitter = ModelFitter(encoding, self._priors, rng)
            stops = self._stop_when_unlikely
            run = Run(encoding, stream, rng, max_pending=MAX_PENDING, stop_when_unlikely=stops)
            opening = list(fitter.transfer.opening)
            if not fitter.transfer.models:
                opening += [row for row in run.design(DESIGN_SIZE) if row not in opening]
            run.search(opening, fitter.fit)
