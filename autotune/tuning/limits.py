"""Divides the time between a search, its last round and the checks before storing."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

from autotune.processes.deadline import Deadline
from autotune.tuning.options import Options

LAST_ROUND_SHARE = 0.2  # the part of a time limit that is kept for the last round
MIN_LAST_ROUND_S = 3.0  # least time of a last round that gets a share of the search's time
MIN_USUAL_S = 30.0  # without a time limit, a last round may take as long as the search took, or this long
CHECKS_SHARE = 0.1  # the part for checks, which also get what the last round leaves
MIN_CHECKS_S = 8.0  # least time of all checks: a winner and its ties take 3 to 6 s on a GPU


@dataclass(frozen=True)
class LastRoundTime:
    """The time of a last round and of the checks that follow it."""

    round: Deadline = field(default_factory=Deadline)  # of its measurements; seldom reached without a limit
    checks_s: float = math.inf  # for its checks, in addition to what the measurements leave
    has_time_limit: bool = False  # for which finalists are left out

    def checks_deadline(self) -> Deadline:
        """The deadline of checks that begin now, or that run beside the measurements."""
        return Deadline(max(self.round.at_s, time.perf_counter()) + self.checks_s)

    def of_repetition(self, checks: Deadline) -> LastRoundTime:
        """The time of a repeated round; its checks get what the first checks left of their deadline."""
        return replace(self, checks_s=checks.left_s(self.checks_s))


def options_before_last_round(options: Options) -> Options:
    """The options of a search without its last round, for which they reserve time."""
    if options.budget.seconds is None:
        return options
    seconds = options.budget.seconds * (1 - LAST_ROUND_SHARE)
    return replace(options, budget=replace(options.budget, seconds=seconds))


def last_round_time(options: Options, spent_s: float) -> LastRoundTime:
    """The time of a last round that follows now on a search that took `spent_s`."""
    limit_s, share = options.budget.seconds, options.last_round_share
    if limit_s is not None:
        return limited_last_round(limit_s - spent_s, limit_s)
    if share is not None:
        return limited_last_round(max(MIN_LAST_ROUND_S, share * spent_s), spent_s)
    return usual_last_round(spent_s)


def limited_last_round(round_s: float, limit_s: float) -> LastRoundTime:
    """The time of a last round that takes `round_s`, and of checks with their share of a time limit."""
    return LastRoundTime(Deadline.after(round_s), checks_time_s(limit_s), has_time_limit=True)


def usual_last_round(spent_s: float) -> LastRoundTime:
    """The time of a last round of all finalists; the deadline ends a round longer than its search."""
    return LastRoundTime(Deadline.after(max(MIN_USUAL_S, spent_s)))


def checks_time_s(limit_s: float | None) -> float:
    """Time for the checks before storing, in addition to what the last round leaves of a time limit."""
    return math.inf if limit_s is None else max(MIN_CHECKS_S, CHECKS_SHARE * limit_s)
