"""The interface of searchers: their protocol, the trials they get, and other devices' results to start from.

A searcher submits configurations and collects trials. It knows no kernels, devices, journals or caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.core.records import Config
from autotune.core.trials import Trial
from autotune.errors import NoMoreTrials
from autotune.hardware.names import Traits
from autotune.space import ValidSpace

ROWS_AT_ONCE = 1024  # rows submitted at once
FASTER = 0.01  # an improvement is at least this share of the time
_UNKNOWN = Traits()


@dataclass(frozen=True)
class PriorResults:
    """Results of the same kernel on another device or for another problem."""

    origin: str  # the device and problem, for messages
    results: tuple[tuple[Config, float | None], ...]  # times in ms, None for a failure
    traits: Traits = _UNKNOWN


class TrialStream(Protocol):
    """Takes configurations and returns trials, from one device, several devices or a recording."""

    @property
    def parallel(self) -> int:
        """Number of configurations that should be under way.

        1 means one device, whose trials come one by one, in the order of submission.
        """
        ...

    def submit(self, configs: Sequence[Config]) -> None:
        """Begin to evaluate as many of the configurations as the budget covers.

        A configuration outside the space is INVALID. It costs no budget, nor does one that was tried before.
        """
        ...

    def collect(self) -> list[Trial]:
        """Wait for at least one trial, and return those that have ended: one at a time if one runs at a time.

        Raises NoMoreTrials when no more come: let it pass through.
        """
        ...


class Searcher(Protocol):
    """Chooses which configurations to try."""

    def search(self, space: ValidSpace, stream: TrialStream, *, seed: int) -> None:
        """Propose until there is nothing left to propose, or `collect` raises NoMoreTrials."""
        ...


class NoTrials:
    """A stream that notes what is submitted, and ends when a trial is asked for."""

    parallel = 1

    def __init__(self) -> None:
        self.submitted: list[Config] = []

    def submit(self, configs: Sequence[Config]) -> None:
        """Note them."""
        self.submitted += configs

    def collect(self) -> list[Trial]:
        """Raise NoMoreTrials."""
        raise NoMoreTrials


class ProposesAhead:
    """A base of searchers that know their opening at once: it compiles while the default runs."""

    def opening(self: Searcher, space: ValidSpace, *, seed: int) -> list[Config]:
        """The configurations that `search` proposes with this seed before it has seen a trial."""
        stream = NoTrials()
        with suppress(NoMoreTrials):
            self.search(space, stream, seed=seed)
        return stream.submitted

    def get_ready(self) -> None:
        """Load what later proposals need and what takes long to load; called while the default runs."""


def evaluate(stream: TrialStream, configs: Sequence[Config]) -> list[Trial]:
    """Submit configurations and wait for all of them; one trial for each, in order.

    Call this with nothing else under way: trials of other configurations that end meanwhile are dropped.
    Raises NoMoreTrials after the last one that the budget covers.
    """
    stream.submit(configs)
    trials: dict[Config, Trial] = {}
    missing = set(configs)
    while missing:
        for trial in stream.collect():
            trials[trial.config] = trial
            missing.discard(trial.config)
    return [trials[config] for config in configs]


def collect_next(stream: TrialStream, count: int) -> list[Trial]:
    """The next `count` trials of one device; with several devices, whatever ends first."""
    trials = stream.collect()
    while stream.parallel == 1 and len(trials) < count:
        trials += stream.collect()
    return trials


def evaluate_rows(space: ValidSpace, rows: Sequence[int] | NDArray[np.int64], stream: TrialStream) -> None:
    """Evaluate rows of the space in this order; NoMoreTrials passes through."""
    under_way = 0
    for start in range(0, len(rows), ROWS_AT_ONCE):
        configs = [space.config(int(row)) for row in rows[start : start + ROWS_AT_ONCE]]
        stream.submit(configs)
        under_way += len(configs)
        while under_way > ROWS_AT_ONCE // 2:  # compilers and devices stay busy
            under_way -= len(stream.collect())
    while under_way:
        under_way -= len(stream.collect())


@dataclass(frozen=True)
class StoppingEstimate:
    """The tried part of a space, and the gain that a model of the trials expects from the rest."""

    tried: int
    valid: int  # configurations in the space
    improvement_probability: float | None  # that an untried one is faster; None if too few have a time
    expected_improvement: float | None  # by trying all the rest, as a share of the best time; None likewise
