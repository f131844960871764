"""One run of a search: tried and pending configurations, and the model's next proposals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import ceil

import numpy as np

from autotune.core import timeline
from autotune.core.records import Config
from autotune.searchers.base import TrialStream, collect_next
from autotune.searchers.surrogate.encoding import Axis, Encoding, Floats, Positions
from autotune.searchers.surrogate.history import History
from autotune.searchers.surrogate.model import GROWTH, Model
from autotune.searchers.surrogate.stopping import UNLIKELY, improvement

MAX_BATCH = 8  # trials that all end before the next ones are chosen
# Parts of what is under way, if it is more than a batch: two compile while one runs, because compiling takes
# longer. With fewer trials, what is under way tells too much to choose without it.
PARTS = 3
MIN_TIMED = 2  # timed trials that a model needs
MODELS_TO_STOP = 2  # in a row that must find an improvement unlikely
TIE = 1e-9  # of distances
DESIGN_SAMPLE = 4096  # rows that a design is chosen from

Fit = Callable[[History, Sequence[int]], Model]
"""Makes a model of a history and of the rows that are being tried."""


class Run:
    """The state of one search."""

    def __init__(
        self,
        encoding: Encoding,
        stream: TrialStream,
        rng: np.random.Generator,
        *,
        has_costs: bool = True,
        min_pending: int = 1,
        max_pending: int = MAX_BATCH,
        stop_when_unlikely: bool = False,
    ) -> None:
        """Begin without trials.

        With several devices, as many trials are pending as keep the devices busy. On one device, half as many
        trials are pending as have ended, at least `min_pending` and at most `max_pending`. If these are more
        than MAX_BATCH, a part of them runs while the rest compiles. In two cases, on one device, all pending
        trials end before the next are chosen: on a CPU, where compilers would disturb the timing, and with
        `stop_when_unlikely`, because an estimate of what is left to gain needs all trials: the search then
        ends when two models in a row find an improvement unlikely. Without `has_costs`, the time that a trial
        takes does not count.
        """
        self._encoding, self._space, self._rng = encoding, encoding.space, rng
        self._stream = stream
        self._stop_when_unlikely = stop_when_unlikely
        waits_for_all = stop_when_unlikely or self._space.device.kind == "cpu"
        self._max_pending = min(max_pending, MAX_BATCH) if waits_for_all else max_pending
        self._min_pending = min(min_pending, self._max_pending)
        self._pending: dict[Config, int] = {}  # rows under way
        self._history = History(has_costs=has_costs)

    def search(self, opening: Sequence[int], fit: Fit) -> None:
        """Search until everything was tried, an improvement is unlikely, or NoMoreTrials is raised.

        The rows of the opening are tried before there is a model, which `fit` makes.
        """
        space, history = self._space, self._history
        self._submit_and_collect(opening)
        unlikely = 0  # models in a row that found an improvement unlikely
        while len(history) < len(space):
            if (~history.failed).sum() < MIN_TIMED:
                self._submit_and_collect(self.design(self._missing(self._pending_without_model())))
                continue
            if not self._stop_when_unlikely and not self._missing(self._pending_with_model()):
                self._submit_and_collect(())  # a model could propose nothing
                continue
            fitted_to = len(history)
            with timeline.span("fit the model"):
                model = fit(history, list(self._pending.values()))
            if self._stop_when_unlikely:
                probability, _ = improvement(model)
                unlikely = unlikely + 1 if probability < UNLIKELY else 0
                if unlikely == MODELS_TO_STOP:
                    break
            while len(history) < GROWTH * fitted_to:
                with timeline.span("choose from the model"):
                    rows = model.propose(self._missing(self._pending_with_model()))
                if not rows and not self._pending:
                    break
                self._submit_and_collect(rows)
                model.update()
        while self._pending:
            self._submit_and_collect(())

    def design(self, count: int) -> list[int]:
        """Rows that are far from each other and from all tried rows."""
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

    def _pending_with_model(self) -> int:
        """The number of trials that should be pending when a model chooses."""
        if self._stream.parallel > 1:
            return self._stream.parallel
        return max(self._min_pending, min(self._max_pending, len(self._history) // 2))

    def _pending_without_model(self) -> int:
        """The number of trials that should be pending when too few have a time for a model."""
        wanted = self._pending_with_model()
        return wanted if self._stream.parallel > 1 else max(wanted, MAX_BATCH)

    def _missing(self, wanted: int) -> int:
        """The number of configurations to submit, so that as many trials are pending as wanted."""
        return max(0, wanted - len(self._pending))

    def _submit_and_collect(self, rows: Sequence[int]) -> None:
        """Submit rows, if there are any, and wait for trials."""
        configs = [self._space.config(row) for row in rows]
        self._pending |= zip(configs, rows, strict=True)
        self._stream.submit(configs)
        if not self._pending:
            return
        parts = PARTS if self._pending_with_model() > MAX_BATCH else 1
        trials = collect_next(self._stream, ceil(len(self._pending) / parts))
        self._history.add([self._pending.pop(trial.config) for trial in trials], trials)


def maximin_order(
    axes: Sequence[Axis], positions: Positions, tried: Positions, rng: np.random.Generator
) -> Iterator[int]:
    """Yield each candidate once, in the order of a greedy maximin design; ties are broken at random.

    If nothing was tried, the first one lies in the middle of every ordinal axis: extreme values are the ones
    that fail together. Source: Johnson, Moore and Ylvisaker, Minimax and maximin distance designs, J. Stat.
    Plan. Inference 26 (1990).
    """
    nearest = np.full(len(positions), np.inf)
    for point in tried:
        np.minimum(nearest, _distances(axes, positions, point), out=nearest)
    if not len(tried):
        nearest = -_distances_from_middle(axes, positions)
    left = np.ones(len(positions), dtype=bool)
    for number in range(len(positions)):
        farthest = nearest[left].max()
        point = int(rng.choice(np.flatnonzero(left & (nearest >= farthest - TIE))))
        yield point
        left[point] = False
        if number == 0 and not len(tried):
            nearest = np.full(len(positions), np.inf)
        np.minimum(nearest, _distances(axes, positions, positions[point]), out=nearest)


def _distances(axes: Sequence[Axis], positions: Positions, point: Positions) -> Floats:
    columns = zip(axes, positions.T, point, strict=True)
    return np.asarray(np.sum([axis.distances[place][column] for axis, column, place in columns], axis=0))


def _distances_from_middle(axes: Sequence[Axis], positions: Positions) -> Floats:
    distances = [
        np.abs(axis.coordinates - 0.5)[column]
        for axis, column in zip(axes, positions.T, strict=True)
        if axis.is_ordinal
    ]
    return np.sum(distances, axis=0) if distances else np.zeros(len(positions))
