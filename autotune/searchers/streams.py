"""Streams of trials, which keep devices and compilers busy, from what a searcher evaluates with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from autotune.core.records import Config
from autotune.core.trials import Trial
from autotune.searchers.base import Evaluate
from autotune.space import Space

BATCH = 1024  # the budget is checked before every trial, so a large batch only helps to work ahead
PARTS = 3  # of what is under way: two compile while one runs, because compiling takes longer


@runtime_checkable
class Stream(Protocol):
    """Evaluates configurations while a searcher goes on; an `evaluate` for several devices also is one."""

    @property
    def parallel(self) -> int:
        """How many configurations should be under way."""
        ...

    def submit(self, configs: Sequence[Config]) -> None:
        """Begin to evaluate configurations."""
        ...

    def collect(self) -> list[Trial]:
        """Wait for trials that have ended since the last call, in any order; raises BudgetSpent."""
        ...


@runtime_checkable
class BeginsEarly(Protocol):
    """An `evaluate` that can be told what comes next."""

    def __call__(self, configs: Sequence[Config]) -> list[Trial]:
        """Return trials, as every `evaluate` does."""
        ...

    @property
    def may_begin_early(self) -> bool:
        """Whether it may compile while the device runs something else."""
        ...

    def begin_early(self, configs: Sequence[Config]) -> None:
        """Begin to compile configurations that will be evaluated next, in this order."""
        ...

    def run_early(self) -> None:
        """Let the device run the first of these, if it is compiled; the next call waits for it."""
        ...


def stream(evaluate: Evaluate) -> Stream:
    """The stream of an `evaluate`; one that has none evaluates a batch when it is submitted."""
    return evaluate if isinstance(evaluate, Stream) else _Batches(evaluate)


def in_parts(evaluate: Evaluate) -> Stream:
    """A stream that runs a third of what is under way while the rest compiles.

    It is the usual one if `evaluate` may not begin early.
    """
    if isinstance(evaluate, BeginsEarly) and evaluate.may_begin_early:
        return _Parts(evaluate)
    return stream(evaluate)


class _Batches:
    parallel = 1

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self._trials: list[Trial] = []

    def submit(self, configs: Sequence[Config]) -> None:
        self._trials += self._evaluate(configs)

    def collect(self) -> list[Trial]:
        trials, self._trials = self._trials, []
        return trials


class _Parts:
    parallel = 1

    def __init__(self, evaluate: BeginsEarly) -> None:
        self._evaluate = evaluate
        self._waiting: list[Config] = []

    def submit(self, configs: Sequence[Config]) -> None:
        self._evaluate.begin_early(configs)
        self._waiting += configs

    def collect(self) -> list[Trial]:
        """Evaluate the oldest part; the device goes on with the next one while a model chooses."""
        count = math.ceil(len(self._waiting) / PARTS)
        now, self._waiting = self._waiting[:count], self._waiting[count:]
        trials = self._evaluate(now)
        self._evaluate.run_early()
        return trials


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
