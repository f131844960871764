"""The winner of a last round, and the ties: configurations that cannot be told from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from autotune.core.trials import Measurement, Objective, Trial, ratio_interval
from autotune.evaluation.stopwatch import ENERGY_RESOLUTION


def indistinguishable(winner: Measurement, rival: Measurement, objective: Objective) -> bool:
    """True if the last round cannot tell another configuration from the winner.

    For times, the confidence interval of the ratio, round by round, reaches 1, or the medians differ by no
    more than the noise. The interval allows for the winner being chosen as the fastest.
    """
    if objective is Objective.TIME:
        if len(rival.samples_ms) < len(winner.samples_ms):  # it left because it was behind in every round
            return False
        slower, _ = ratio_interval(rival, winner)
        return slower <= 1 or rival.median_ms <= winner.median_ms * (1 + (winner.noise or 0.0))
    return (rival.score(objective) or math.inf) <= (winner.score(objective) or 0.0) * (1 + ENERGY_RESOLUTION)


def winner_and_ties(
    chosen: Sequence[Trial], measurements: Mapping[str, Measurement], objective: Objective
) -> tuple[Trial, ...]:
    """The best of measured finalists, then its ties, best first."""
    ranked = sorted(chosen, key=lambda trial: measurements[trial.key].score(objective) or math.inf)
    winner, *others = ranked
    best = measurements[winner.key]
    return (winner, *(one for one in others if indistinguishable(best, measurements[one.key], objective)))
