"""Turns: configurations timed one after the other, round by round, so that all see the same conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import mean, median

from autotune.core.records import Config
from autotune.core.stages import TIMING, Stage
from autotune.core.trials import Failure, Objective, median_interval
from autotune.evaluation.device_samples import sample
from autotune.processes.deadline import Deadline
from autotune.tuning.context import BuiltConfig, TuningContext

SAMPLES_PER_TURN = 2  # averaged into one value, because samples of the same turn are correlated
PRECISION = 0.02  # a time is precise if the median's interval is narrower, relative to the median
UNRIVALLED_PRECISION = 0.1  # the same if no other can be the fastest
MIN_ROUNDS = 3
SHIFT = 0.03  # a larger relative change of a whole round's times is taken out
LEAVING_ROUNDS = 6  # after so many, a few bad samples cannot put a fast configuration behind in every round
FAR_SLOWER = 2.0  # a series that took so many times as long as the fastest in each of MIN_ROUNDS leaves then
BEHIND = 0.6  # rounds times lag at which a series leaves: 6 rounds that all took 10% longer, or 12 of 5%
MIN_SERIES = 4  # series that stay: changes common to all are changes of the machine


@dataclass(eq=False)
class Series:
    """The times of one configuration in ms, one value per round until it leaves."""

    built: BuiltConfig
    batch: int  # runs per sample
    repeatable: bool  # True if runs need no restored arrays
    values_ms: list[float] = field(default_factory=list)
    stays: bool = False  # True if it is timed in every round, however slow
    leader: Series | None = None  # the fastest series when this one left
    ratios: tuple[float, ...] = ()  # ratios to the leader's times, round by round

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.built.instance.config


class Turns:
    """Times every series once per round, each round in a new random order.

    If the time decides, a series that was clearly slower than the fastest in every round leaves.
    """

    def __init__(
        self,
        context: TuningContext,
        series: Sequence[Series],
        rejected: dict[Config, Failure],
        summarize: Callable[[tuple[float, ...]], float] = mean,
        stage: str = TIMING,
    ) -> None:
        """Prepare the workloads of all series in the worker; values are appended to these.

        A series that fails is added to `rejected` and no longer timed. `summarize` turns the samples of one
        turn into one value, and `stage` names the turns in the progress line.
        """
        self._context, self._rejected, self._summarize = context, rejected, summarize
        self._stage = stage
        self._order, self._random, self._rounds = list(series), Random(0), 0
        # workloads differ where shapes depend on the configuration: keep all in memory if they fit
        context.worker.load(*(timed.built.instance.workload for timed in series))

    def run(self, rounds: int, deadline: Deadline) -> None:
        """Time that many more rounds, but begin none after the deadline once MIN_ROUNDS are done."""
        last = self._rounds + rounds
        while self._rounds < last and (self._rounds < MIN_ROUNDS or not deadline.is_over):
            self._rounds += 1
            self._context.observer.stage(Stage(self._stage, self._rounds, last))
            self._random.shuffle(self._order)  # no series should always follow the same neighbour
            for series in self._order:
                if series.config not in self._rejected:
                    self._time(series)
            if self._rounds >= MIN_ROUNDS and self._context.objective is Objective.TIME:
                self._leave()

    def _leave(self) -> None:
        """Drop series that can neither win nor tie; the more rounds, the smaller the lag that is enough."""
        racing = [series for series in self._order if series.config not in self._rejected]
        racing.sort(key=lambda series: median(series.values_ms))
        for series in racing[MIN_SERIES:]:
            pairs = zip(series.values_ms, racing[0].values_ms, strict=True)
            ratios = tuple(theirs / ours for theirs, ours in pairs)
            lag = min(ratios) - 1  # relative to the fastest, in the round where it was least
            is_behind = self._rounds >= LEAVING_ROUNDS and lag * self._rounds > BEHIND
            if (is_behind or min(ratios) > FAR_SLOWER) and not series.stays:
                series.leader, series.ratios = racing[0], ratios
                self._order.remove(series)

    def _time(self, series: Series) -> None:
        answer = self._context.run(
            sample,
            series.built.binary,
            series.built.instance.workload,
            self._context.policy.call_mode,
            count=SAMPLES_PER_TURN,
            batch=series.batch,
            repeatable=series.repeatable,
        )
        if isinstance(answer, Failure):
            self._rejected[series.config] = answer
        else:
            series.values_ms.append(self._summarize(answer))


def is_precise(series: Sequence[Series], objective: Objective = Objective.TIME) -> bool:
    """True if the median time of the fastest series is known well enough.

    That is to PRECISION, or less precisely if the time decides and every other series was slower.
    """
    left = sorted((timed.values_ms for timed in series if timed.leader is None), key=median)
    if not left:
        return True
    fastest, *others = left
    low, high = median_interval(fastest, len(series))
    ratios = ([theirs / ours for theirs, ours in zip(other, fastest, strict=True)] for other in others)
    has_rival = any(median_interval(series_ratios, len(series))[0] <= 1 for series_ratios in ratios)
    precision = PRECISION if has_rival or objective is not Objective.TIME else UNRIVALLED_PRECISION
    return high - low <= precision * median(fastest)


def remove_shifts(series: Sequence[Series]) -> None:
    """Scale back every round that was slower or faster for all, for example because the clock changed.

    The times of a series that has left follow its leader, which was timed in later rounds as well.
    """
    whole = [timed for timed in series if timed.leader is None]
    medians = [median(timed.values_ms) for timed in whole]
    for number, values in enumerate(zip(*(timed.values_ms for timed in whole), strict=True)):
        shifts = [value / usual for value, usual in zip(values, medians, strict=True)]
        shift = min(max(shifts), max(min(shifts), 1.0))  # the one closest to 1 if all are on one side
        if abs(shift - 1) > SHIFT:
            for timed in whole:
                timed.values_ms[number] /= shift
    for timed in sorted(series, key=lambda timed: len(timed.values_ms), reverse=True):
        if timed.leader is not None:  # if it left later, its times follow its own leader by now
            timed.values_ms = [ratio * median(timed.leader.values_ms) for ratio in timed.ratios]
