"""Turns: configurations timed one after the other, round by round, so that all see the same conditions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import mean, median

from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import Binary, Failure, Trial, median_interval
from autotune.evaluation.device_process import sample
from autotune.evaluation.instance import KernelInstance
from autotune.tuning.context import TuningContext

SAMPLES_PER_TURN = 2  # averaged into one value, because samples of the same turn are correlated
PRECISION = 0.02  # width of the median's interval, relative to the median, below which a time is precise
MIN_ROUNDS = 3
SHIFT = 0.03  # relative change of a whole round's times above which it is taken out


@dataclass(frozen=True)
class Finalist:
    """A compiled configuration with its trial of the search."""

    instance: KernelInstance
    binary: Binary
    trial: Trial
    repeatable: bool


@dataclass
class Series:
    """The times of one finalist in ms, one value per round."""

    finalist: Finalist
    batch: int
    values_ms: list[float] = field(default_factory=list)

    @property
    def config(self) -> Config:
        """The finalist's configuration."""
        return self.finalist.instance.config


class Turns:
    """Times every series once per round, each round in a new random order."""

    def __init__(
        self,
        context: TuningContext,
        series: Sequence[Series],
        rejected: dict[Config, Failure],
        summarize: Callable[[tuple[float, ...]], float] = mean,
        what: str = "last round: timing",
    ) -> None:
        """Prepare the problems of all series in the worker.

        Args:
            context: The open run.
            series: What to time; values are appended to it.
            rejected: Failures by configuration; a series that fails is added and no longer timed.
            summarize: Makes one value of the samples of one turn.
            what: What the turns are for, as the progress says it.
        """
        self._context, self._rejected, self._summarize = context, rejected, summarize
        self._what = what
        self._order, self._random, self._rounds = list(series), Random(0), 0
        # problems differ where shapes depend on the configuration: keep all in memory if they fit
        context.worker.prepare(*(timed.finalist.instance.problem for timed in series))

    def run(self, rounds: int, until_s: float = math.inf) -> None:
        """Time that many more rounds, but once MIN_ROUNDS are done none after `until_s` of the clock."""
        last = self._rounds + rounds
        while self._rounds < last and (self._rounds < MIN_ROUNDS or time.perf_counter() < until_s):
            self._rounds += 1
            self._context.observer.stage(Stage(f"{self._what}, round", self._rounds, last))
            self._random.shuffle(self._order)  # so that no series always follows the same neighbour
            for series in self._order:
                if series.config not in self._rejected:
                    self._time(series)

    def _time(self, series: Series) -> None:
        finalist = series.finalist
        answer: tuple[float, ...] | Failure = self._context.run_on(
            finalist.instance.problem,
            sample,
            finalist.binary,
            self._context.policy.conditions,
            count=SAMPLES_PER_TURN,
            batch=series.batch,
            repeatable=finalist.repeatable,
        )
        if isinstance(answer, Failure):
            self._rejected[series.config] = answer
        else:
            series.values_ms.append(self._summarize(answer))


def is_precise(series: Sequence[Series]) -> bool:
    """Whether the median time of the fastest series is known to PRECISION."""
    fastest = min((timed.values_ms for timed in series), key=median, default=[])
    if not fastest:
        return True
    low, high = median_interval(fastest, len(series))
    return high - low <= PRECISION * median(fastest)


def remove_shifts(series: Sequence[Series]) -> None:
    """Scale back every round that was slower or faster as a whole, for example after a clock change."""
    medians = [median(timed.values_ms) for timed in series]
    for number, values in enumerate(zip(*(timed.values_ms for timed in series), strict=True)):
        shift = median(value / usual for value, usual in zip(values, medians, strict=True))
        if abs(shift - 1) > SHIFT:
            for timed in series:
                timed.values_ms[number] /= shift
