"""Scores of searches on a recorded space, relative to the calculated expectation of random search.

The score over time follows Willemsen, Schoonhoven, Filipovic, Tornede, van Nieuwpoort and van Werkhoven, "A
methodology for comparing optimization algorithms for auto-tuning", Future Generation Computer Systems 159
(2024), 489-504, sections 3.2 to 3.4. 0 is random search, 1 is the optimum from the start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray
from replay import Floats, Recorded, ReplayRun
from scipy.interpolate import PchipInterpolator
from scipy.optimize import isotonic_regression

CHECKPOINTS = (50, 100, 200)  # numbers of evaluations after which the best so far is reported
MARGINS = (5, 1)  # percent above the optimum that count as reached
AXIS_EVALUATIONS = 400  # the time axis of P400 ends there at the latest
_POINTS = 1000  # of the time axis
_FROM, _TO = 0.01, 0.95  # the time axis, as shares of the way from the median to the optimum
_MARGIN = 0.1  # share of the axis, on either side, within which evaluations count for the fit


@dataclass(frozen=True)
class Efficiency:
    """The scores of some runs of one searcher on one space."""

    space: str  # kernel and device
    runs: int
    p: float  # score over time until random search is 95% of the way from the median to the optimum
    p400: float  # the same, until 400 evaluations of random search at most
    # by number of evaluations, the optimum's time over the best one's, mean of the runs; 0 for a run without
    # a time, absent beyond the longest run
    found: dict[int, float]
    # by percent above the optimum, evaluations until it was reached, median of the runs; None if half of them
    # did not
    needed: dict[int, float | None]
    evaluations: float  # median of the runs
    failing: float  # share of the evaluations that failed
    thinking_ms: float  # the searcher's own wall time per evaluation


def efficiency(recorded: Recorded, runs: Sequence[ReplayRun]) -> Efficiency:
    """Score runs of one searcher with different seeds."""
    optimum_ms = float(np.nanmin(recorded.times_ms))
    best_ms = [np.fmin.accumulate(recorded.times_ms[list(run.rows)]) for run in runs]
    evaluations = sum(len(run.rows) for run in runs)
    longest = max(len(run.rows) for run in runs)
    return Efficiency(
        space=recorded.name,
        runs=len(runs),
        p=RandomBaseline(recorded).score(runs),
        p400=RandomBaseline(recorded, AXIS_EVALUATIONS).score(runs),
        found={
            count: float(np.mean([_found(best, count, optimum_ms) for best in best_ms]))
            for count in CHECKPOINTS
            if count <= longest
        },
        needed={margin: _needed(best_ms, optimum_ms * (1 + margin / 100)) for margin in MARGINS},
        evaluations=median(len(run.rows) for run in runs),
        failing=sum(int(np.isnan(recorded.times_ms[list(run.rows)]).sum()) for run in runs)
        / max(1, evaluations),
        thinking_ms=1e3 * sum(run.thinking_s for run in runs) / max(1, evaluations),
    )


class RandomBaseline:
    """The expected best time of random search over the time spent."""

    def __init__(self, recorded: Recorded, max_evaluations: int | None = None) -> None:
        """Calculate the curve; `max_evaluations` ends the time axis."""
        is_valid = np.isfinite(recorded.times_ms)
        self._recorded = recorded
        self._times_ms = np.sort(recorded.times_ms[is_valid])
        typical_s = float(np.median(recorded.costs_s))
        last = min(self._evaluations_to(_TO), max_evaluations or len(recorded.times_ms))
        self._axis_s = np.linspace(self._evaluations_to(_FROM) * typical_s, last * typical_s, _POINTS)
        # mean cost of a valid evaluation and of the failures per valid one
        each_s = float(recorded.costs_s[is_valid].mean())
        if not is_valid.all():
            each_s += float((1 - is_valid.mean()) * recorded.costs_s[~is_valid].mean())
        counts = np.rint(np.maximum(self._axis_s / each_s, 1)).astype(int)
        self._curve_ms = self._smooth(counts)
        # if only the optimum is as good as the end of the axis, count until the optimum
        is_ahead = self._curve_ms > self._value_at(_TO)
        self._counts = is_ahead if is_ahead.any() else self._curve_ms > self._times_ms[0]

    def score(self, runs: Sequence[ReplayRun]) -> float:
        """The share of random search's distance to the optimum that the runs save, mean over the time axis.

        A falling curve is fitted to the ranks of all runs' best so far; it is constant after half of the runs
        have ended. nan if no run has a time.
        """
        traces = [self._trace(run) for run in runs]
        traces = [trace for trace in traces if len(trace[0])]
        if not traces or not self._counts.any():
            return math.nan
        spent_s = np.concatenate([trace[0] for trace in traces])
        ranks = np.concatenate([trace[1] for trace in traces])
        low, high = self._axis_s[0] * (1 - _MARGIN), self._axis_s[-1] * (1 + _MARGIN)
        inside = (low <= spent_s) & (spent_s <= high)
        if not inside.any():  # a single evaluation takes longer than the whole axis
            inside = spent_s == spent_s.min()
        fitted = _falling(spent_s[inside], ranks[inside], self._axis_s)
        reached_ms = self._times_ms[np.clip(np.rint(fitted).astype(int), 0, len(self._times_ms) - 1)]
        after = self._axis_s > median(trace[0][-1] for trace in traces)
        if after.any():
            reached_ms[after] = reached_ms[int(np.argmax(after))]
        gained = (self._curve_ms - reached_ms)[self._counts]
        return float(np.mean(gained / (self._curve_ms - self._times_ms[0])[self._counts]))

    def _value_at(self, share: float) -> float:
        """The time at a share of the way from the median to the optimum."""
        middle = float(np.median(self._times_ms))
        return middle - share * (middle - float(self._times_ms[0]))

    def _evaluations_to(self, share: float) -> int:
        """Evaluations until random search is expected to reach that time."""
        worse = int((self._times_ms > self._value_at(share)).sum())
        return math.ceil(worse / (len(self._times_ms) + 1 - worse))

    def _smooth(self, counts: NDArray[np.int64]) -> Floats:
        """The expected best time after each number of evaluations, by monotone interpolation."""
        total = len(self._times_ms)
        distinct = np.unique(counts)
        ranks = np.rint(distinct * (total + 1) / (distinct + 1)).astype(int)
        expected = self._times_ms[::-1][np.minimum(ranks, total - 1)]
        if len(distinct) < 2:
            return np.full(len(counts), expected[0])
        between = np.linspace(distinct[0], distinct[-1], len(counts))
        return np.asarray(PchipInterpolator(distinct, expected)(between))

    def _trace(self, run: ReplayRun) -> tuple[Floats, Floats]:
        """Time spent, and rank of the best so far (0: the optimum), from the first success on."""
        rows = list(run.rows)
        best_ms = np.fmin.accumulate(self._recorded.times_ms[rows])
        known = np.isfinite(best_ms)
        spent_s = np.cumsum(self._recorded.costs_s[rows])[known]
        return spent_s, np.searchsorted(self._times_ms, best_ms[known]).astype(float)


def _falling(x: Floats, y: Floats, at: Floats) -> Floats:
    """Isotonic regression of the points by a falling curve, interpolated at some places."""
    places, owner, sizes = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(owner, weights=y) / sizes
    fitted = isotonic_regression(means, weights=sizes.astype(float), increasing=False).x
    return np.asarray(np.interp(at, places, fitted))


def _found(best_ms: Floats, count: int, optimum_ms: float) -> float:
    if not len(best_ms):
        return 0.0
    best = float(best_ms[min(count, len(best_ms)) - 1])
    return optimum_ms / best if math.isfinite(best) else 0.0


def _needed(best_ms: Sequence[Floats], enough_ms: float) -> float | None:
    reached = [np.flatnonzero(best <= enough_ms) for best in best_ms]
    middle = median(int(rows[0]) + 1 if len(rows) else math.inf for rows in reached)
    return middle if math.isfinite(middle) else None
