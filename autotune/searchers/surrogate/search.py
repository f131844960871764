"""The default search: a surrogate of the whole space, started from what other devices know."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
from threadpoolctl import threadpool_limits

from autotune.searchers.base import Evaluate, SourceResults
from autotune.searchers.exhaustive import evaluate_rows
from autotune.searchers.surrogate.candidate_set import spread
from autotune.searchers.surrogate.encoding import axes_of, positions_of
from autotune.searchers.surrogate.history import History
from autotune.searchers.surrogate.model import Hyperparameters, Model
from autotune.searchers.surrogate.stopping import UNLIKELY, improvement
from autotune.searchers.surrogate.transfer import TransferModel, portfolio
from autotune.space import Space

BATCH = 8
OPENING = 5  # configurations tried before there is a model
MIN_TIMES = 2  # that a model is made of
GROWTH = 1.25  # a model is made anew when there are so many times as many observations
MODELS_TO_STOP = 2
DESIGN_SAMPLE = 4096  # rows that a design is chosen from


class SurrogateSearch:
    """Tries what improves most per second in expectation, by a Gaussian process over all configurations."""

    def __init__(
        self,
        priors: Sequence[SourceResults] = (),
        *,
        batch: int = BATCH,
        stop_when_unlikely: bool = False,
    ) -> None:
        """At most `batch` configurations are proposed at once."""
        self._priors = tuple(priors)
        self._batch = batch
        self._stop_when_unlikely = stop_when_unlikely

    def search(self, space: Space, evaluate: Evaluate, *, seed: int) -> None:
        """Propose every configuration once, the most promising first; BudgetSpent passes through.

        With `stop_when_unlikely` it ends when two models in a row expect nothing faster among the rest.
        """
        rng = np.random.default_rng(seed)
        if len(space) <= OPENING:
            evaluate_rows(space, rng.permutation(len(space)), evaluate)
        else:
            course = _Course(space, evaluate, self._priors, self._batch, rng)
            with threadpool_limits(1, user_api="blas"):  # threads of so small matrices wait for each other
                course.run(stop_when_unlikely=self._stop_when_unlikely)


class _Course:
    """One search."""

    def __init__(
        self,
        space: Space,
        evaluate: Evaluate,
        priors: Sequence[SourceResults],
        batch: int,
        rng: np.random.Generator,
    ) -> None:
        self._space = space
        self._evaluate = evaluate
        self._batch = batch
        self._rng = rng
        self._axes = axes_of(space.parameters)
        self._knowledge = TransferModel(space, self._axes, priors, rng)
        self._seen = History()

    def run(self, *, stop_when_unlikely: bool) -> None:
        """Until everything has been tried, nothing is expected any more, or BudgetSpent is raised."""
        self._try(self._opening())
        hyperparameters = Hyperparameters()
        hopeless = 0  # models in a row
        while len(self._seen) < len(self._space):
            if (~self._seen.failed).sum() < MIN_TIMES:
                self._try(self._design(self._batch))
                continue
            made_of = len(self._seen)
            model = Model(
                self._space.rows, self._axes, self._knowledge, self._seen, hyperparameters, self._rng
            )
            hyperparameters = model.hyperparameters
            if stop_when_unlikely:
                chance, _ = improvement(model, self._seen)
                hopeless = hopeless + 1 if chance < UNLIKELY else 0
                if hopeless == MODELS_TO_STOP:
                    return
            while len(self._seen) < GROWTH * made_of:
                rows = model.propose(self._next_batch(), self._seen)
                if not rows:
                    break
                self._try(rows)
                model.learn(self._seen, len(rows))

    def _next_batch(self) -> int:
        """Small in the beginning, when every answer changes the picture."""
        return min(self._batch, max(1, len(self._seen) // 2))

    def _try(self, rows: Sequence[int]) -> None:
        for start in range(0, len(rows), self._batch):
            part = rows[start : start + self._batch]
            trials = self._evaluate([self._space.config(row) for row in part])
            self._seen.add(part, trials)

    def _opening(self) -> list[int]:
        """A design that covers the space; where other devices are known, what is best there comes first."""
        known = self._knowledge.rows(DESIGN_SAMPLE)
        if not len(known):
            return list(dict.fromkeys([*self._knowledge.bare_bests, *self._design(OPENING)]))
        positions = positions_of(self._space.rows[known], self._axes)
        foresight = self._knowledge.predict(known, positions)
        best = [int(known[place]) for place in portfolio(foresight, self._axes, positions)]
        return list(dict.fromkeys([*best, *self._knowledge.bare_bests]))

    def _design(self, count: int) -> list[int]:
        """Rows that are far from each other and from all that was tried."""
        space = self._space
        tried = self._seen.rows
        if len(space) <= 4 * DESIGN_SAMPLE:
            free = np.setdiff1d(np.arange(len(space)), tried)
            sample = self._rng.choice(free, min(len(free), DESIGN_SAMPLE), replace=False)
        else:
            sample = np.setdiff1d(self._rng.integers(0, len(space), DESIGN_SAMPLE), tried)
        points = spread(
            self._axes,
            positions_of(space.rows[sample], self._axes),
            positions_of(space.rows[tried], self._axes),
            self._rng,
        )
        return [int(sample[point]) for point in islice(points, count)]
