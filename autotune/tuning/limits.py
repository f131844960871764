"""Divides the time between a search, its last round and the checks before storing."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from autotune.tuning.options import Options

LAST_ROUND_SHARE = 0.2  # share of a time limit
MIN_LAST_ROUND_S = 3.0  # at least, where it gets a share of the search's time
MIN_UNLIMITED_S = 30.0  # at least, without a limit, where it may take as long as the search took
CHECKS_SHARE = 0.1  # of a time limit, in addition to what the last round leaves
MIN_CHECKS_S = 8.0  # a winner and its ties take 3 to 6 s on a GPU


@dataclass(frozen=True)
class LastRoundLimits:
    """The time for the last round and the checks after it."""

    round_s: float
    is_limited: bool = False  # fewer configurations take part, to end in time
    checks_s: float = math.inf  # for the checks before storing, in addition to what the round leaves

    def from_now(self) -> TimeLeft:
        """The time for an end that begins now."""
        return TimeLeft(time.perf_counter() + self.round_s, self.checks_s)


@dataclass
class TimeLeft:
    """The time for the end of a search; last rounds that repeat each other share it."""

    round_end_s: float = math.inf  # of the last round, on the clock of `time.perf_counter`
    checks_s: float = math.inf  # for the checks before storing, after that

    @property
    def checks_end_s(self) -> float:
        """The time at which checks that begin now should end."""
        return max(self.round_end_s, time.perf_counter()) + max(0.0, self.checks_s)

    @contextmanager
    def checking(self) -> Iterator[float]:
        """Spend time on checks; gives the time when they should end."""
        end_s, left_s = self.checks_end_s, self.checks_s
        try:
            yield end_s
        finally:
            self.checks_s = min(left_s, end_s - time.perf_counter())


def exploration_options(options: Options) -> Options:
    """The options of a search without its last round, whose part of the time is left."""
    if options.budget.seconds is None:
        return options
    seconds = options.budget.seconds * (1 - LAST_ROUND_SHARE)
    return replace(options, budget=replace(options.budget, seconds=seconds))


def last_round_limits(options: Options, spent_s: float) -> LastRoundLimits:
    """The limits of the last round after a search that took `spent_s`."""
    limit_s, share = options.budget.seconds, options.last_round_share
    if limit_s is not None:
        return limited_last_round(limit_s - spent_s, limit_s)
    if share is not None:
        return limited_last_round(max(MIN_LAST_ROUND_S, share * spent_s), spent_s)
    return unlimited_last_round(spent_s)


def limited_last_round(round_s: float, limit_s: float) -> LastRoundLimits:
    """The limits of a last round with a given time, and of checks with their share of a time limit."""
    return LastRoundLimits(round_s, is_limited=True, checks_s=checks_time_s(limit_s))


def unlimited_last_round(spent_s: float) -> LastRoundLimits:
    """The limits of a last round without a time limit, after a search that took `spent_s`."""
    return LastRoundLimits(max(MIN_UNLIMITED_S, spent_s))


def checks_time_s(limit_s: float | None) -> float:
    """Time for the checks before storing, in addition to what the last round leaves of a time limit."""
    return math.inf if limit_s is None else max(MIN_CHECKS_S, CHECKS_SHARE * limit_s)
