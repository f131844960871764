"""The default search: Bayesian optimisation of the whole space, started from results of other devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from autotune.core.records import Config
from autotune.searchers.base import Evaluate, SourceResults
from autotune.searchers.random_search import RandomSearch
from autotune.searchers.streams import stream
from autotune.searchers.surrogate.blas_threads import one_blas_thread
from autotune.searchers.surrogate.encoding import Encoding
from autotune.searchers.surrogate.history import History
from autotune.searchers.surrogate.initial_design import maximin_order
from autotune.searchers.surrogate.model import Hyperparameters, Model
from autotune.searchers.surrogate.portfolio import portfolio
from autotune.searchers.surrogate.stopping import UNLIKELY, improvement
from autotune.searchers.surrogate.transfer import TransferModel
from autotune.space import Space

BATCH = 8
DESIGN = 5  # configurations of the initial design
MIN_TIMED = 2  # timed trials that a model needs
GROWTH = 1.25  # fit a new model when the history has grown by this factor
MODELS_TO_STOP = 2  # in a row that must find an improvement unlikely
DESIGN_SAMPLE = 4096  # rows that a design is chosen from


class SurrogateSearch:
    """Tries the greatest expected improvement per second by a Gaussian process over all configurations."""

    def __init__(
        self,
        sources: Iterable[SourceResults] = (),
        *,
        stop_when_unlikely: bool = False,
    ) -> None:
        """Propose at most BATCH configurations at once; sources may grow during the search."""
        self._sources = sources
        self._stop_when_unlikely = stop_when_unlikely

    def search(self, space: Space, evaluate: Evaluate, *, seed: int) -> None:
        """Propose every configuration once, the most promising first; BudgetSpent passes through.

        With `stop_when_unlikely`, return when two models in a row find an improvement unlikely.
        """
        if len(space) <= DESIGN:
            RandomSearch().search(space, evaluate, seed=seed)
            return
        with one_blas_thread():
            run = _Run(space, evaluate, self._sources, np.random.default_rng(seed))
            run.search(stop_when_unlikely=self._stop_when_unlikely)


class _Run:
    """The state of one search."""

    def __init__(
        self,
        space: Space,
        evaluate: Evaluate,
        sources: Iterable[SourceResults],
        rng: np.random.Generator,
    ) -> None:
        self._space = space
        self._stream = stream(evaluate)
        self._pending: dict[Config, int] = {}  # rows under way
        self._rng = rng
        self._encoding = Encoding(space)
        self._sources = sources
        self._transfer = TransferModel(self._encoding, tuple(sources), rng)
        self._history = History()

    def search(self, *, stop_when_unlikely: bool) -> None:
        """Search until everything was tried, an improvement is unlikely, or BudgetSpent is raised."""
        space, history = self._space, self._history
        self._try(self._initial_design())
        hyperparameters = Hyperparameters()
        unlikely = 0  # models in a row
        while len(history) < len(space):
            if (~history.failed).sum() < MIN_TIMED:
                self._try(self._design(self._room(BATCH)))
                continue
            if self._learn():
                hyperparameters = replace(hyperparameters, time=None)  # of other sources
            fitted_to = len(history)
            data = self._encoding, self._transfer, history
            model = Model(*data, hyperparameters, self._rng, list(self._pending.values()))
            hyperparameters = model.hyperparameters
            if stop_when_unlikely:
                probability, _ = improvement(model)
                unlikely = unlikely + 1 if probability < UNLIKELY else 0
                if unlikely == MODELS_TO_STOP:
                    break
            while len(history) < GROWTH * fitted_to:
                # few in the beginning, when every result changes the model
                rows = model.propose(self._room(len(history) // 2))
                if not rows and not self._pending:
                    break
                self._try(rows)
                model.update()
        while self._pending:
            self._try(())

    def _learn(self) -> bool:
        """Model the sources again if they have grown; return whether they have."""
        sources = tuple(self._sources)
        if sum(len(source.results) for source in sources) <= GROWTH * self._transfer.results:
            return False
        self._transfer = TransferModel(self._encoding, sources, self._rng)
        return True

    def _room(self, wanted: int) -> int:
        """How many more configurations to try at once; one device tries `wanted`, but at most a batch."""
        parallel = self._stream.parallel
        most = parallel if parallel > 1 else min(BATCH, max(1, wanted))
        return max(0, most - len(self._pending))

    def _try(self, rows: Sequence[int]) -> None:
        """Begin to try some rows, and wait for trials."""
        configs = [self._space.config(row) for row in rows]
        self._pending |= zip(configs, rows, strict=True)
        self._stream.submit(configs)
        trials = self._stream.collect()
        self._history.add([self._pending.pop(trial.config) for trial in trials], trials)

    def _initial_design(self) -> list[int]:
        """The best of the sources; without models of them, a design that covers the space."""
        known = self._transfer.fastest_rows(DESIGN_SAMPLE)
        bests = self._transfer.bests_without_model
        if not len(known):
            return list(dict.fromkeys([*bests, *self._design(DESIGN)]))
        positions = self._encoding.positions(known)
        prediction = self._transfer.predict(known)
        chosen = [int(known[index]) for index in portfolio(prediction, self._encoding.axes, positions)]
        return list(dict.fromkeys([*chosen, *bests]))

    def _design(self, count: int) -> list[int]:
        """Rows that are far from each other and from all that was tried."""
        space = self._space
        tried = np.append(self._history.rows, np.array(list(self._pending.values()), np.intp))
        if len(space) <= 4 * DESIGN_SAMPLE:
            free = np.setdiff1d(np.arange(len(space)), tried)
            sample = self._rng.choice(free, min(len(free), DESIGN_SAMPLE), replace=False)
        else:
            sample = np.setdiff1d(self._rng.integers(0, len(space), DESIGN_SAMPLE), tried)
        axes, positions = self._encoding.axes, self._encoding.positions
        order = maximin_order(axes, positions(sample), positions(tried), self._rng)
        return [int(sample[point]) for point in islice(order, count)]
