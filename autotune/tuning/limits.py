"""Divides the time between a search, its last round and the checks before storing."""

from __future__ import annotations

import math
from dataclasses import replace

from autotune.checks.deadline import Deadline
from autotune.tuning.options import Options

LAST_ROUND_SHARE = 0.2  # share of a time limit
MIN_LAST_ROUND_S = 3.0  # at least, where it gets a share of the search's time
MIN_UNLIMITED_S = 30.0  # at least, without a limit, where it may take as long as the search took
CHECKS_SHARE = 0.1  # of a time limit, in addition to what the last round leaves
MIN_CHECKS_S = 8.0  # a winner and its ties take 3 to 6 s on a GPU


def options_before_last_round(options: Options) -> Options:
    """The options of a search without its last round, whose part of the time is left."""
    if options.budget.seconds is None:
        return options
    seconds = options.budget.seconds * (1 - LAST_ROUND_SHARE)
    return replace(options, budget=replace(options.budget, seconds=seconds))


def last_round_deadline(options: Options, spent_s: float) -> Deadline:
    """The deadline of a last round that follows now on a search that took `spent_s`."""
    limit_s, share = options.budget.seconds, options.last_round_share
    if limit_s is not None:
        return limited_last_round(limit_s - spent_s, limit_s)
    if share is not None:
        return limited_last_round(max(MIN_LAST_ROUND_S, share * spent_s), spent_s)
    return unlimited_last_round(spent_s)


def limited_last_round(round_s: float, limit_s: float) -> Deadline:
    """The deadline of a last round with a given time, and of checks with their share of a time limit."""
    return Deadline.after(round_s, checks_time_s(limit_s))


def unlimited_last_round(spent_s: float) -> Deadline:
    """The deadline of a last round without a time limit, after a search that took `spent_s`."""
    return Deadline.after(max(MIN_UNLIMITED_S, spent_s))


def checks_time_s(limit_s: float | None) -> float:
    """Time for the checks before storing, in addition to what the last round leaves of a time limit."""
    return math.inf if limit_s is None else max(MIN_CHECKS_S, CHECKS_SHARE * limit_s)
