"""Chooses the finalists of the last round: the fastest trials, as many as there is time for.

1. `last_round` finds the trials that have to take part: the default, the fastest of each group, and the named
   ones that are `nearly_as_fast` as the fastest. It passes them to `choose_in_time`.
2. That takes the `usual_finalists`. If the machine `is_unsteady`, it takes more of the `fastest_trials`, and
   `_preselect` times these in a few turns and keeps the best.
3. `finalists_in_time` leaves out the last of these for which a time limit has no time.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from statistics import median

from autotune.core.records import Config
from autotune.core.stages import COMPILING
from autotune.core.trials import Objective, Trial
from autotune.processes.deadline import Deadline
from autotune.tuning.context import TuningContext
from autotune.tuning.limits import LastRoundTime
from autotune.tuning.turns import Series, Turns

MAX_FINALISTS = 8
MAX_SLOWER = 1.5  # times as long as the fastest trial: one that takes longer is no finalist
MAX_BEHIND = 1.25  # the same for one that is named before
# on an unsteady machine, a few turns among more trials choose the finalists
MAX_CANDIDATES = 24
MAX_FEW = 12  # up to so many candidates all take part: choosing among them would take longer
SELECTION_ROUNDS = 6
UNSTEADY = 0.05  # relative difference between a control and its earlier time that counts as unsteady
UNSTEADY_SHARE = 0.1  # with more unsteady controls, the machine counts as unsteady


def by_score(trials: Iterable[Trial]) -> list[Trial]:
    """The trials that have a score, best first."""
    scored = [(score, trial) for trial in trials if (score := trial.score) is not None]
    return [trial for _, trial in sorted(scored, key=lambda pair: pair[0])]


def fastest_trials(trials: Iterable[Trial], count: int = MAX_FINALISTS) -> list[Trial]:
    """The fastest trials; of trials that share a binary and its measurement, only one.

    Where its control was slow, a trial's time is scaled back by the same factor. A control may be slow by
    chance, so two orders are interleaved: the first place goes to the fastest as measured, the next two to
    the fastest by scaled time, and so on. Trials far slower than the fastest are left out.
    """
    distinct: dict[object, Trial] = {}
    for trial in _in_both_orders(by_score(trials)):
        distinct.setdefault(measurement_key(trial), trial)
    best = list(distinct.values())[:count]
    is_time = all(trial.objective is Objective.TIME for trial in best)
    far = MAX_SLOWER * min((trial.score or 0.0 for trial in best), default=0.0) if is_time else math.inf
    return [trial for trial in best if _steady_score(trial) <= far]


def _in_both_orders(measured: Sequence[Trial]) -> Iterator[Trial]:
    """Interleave two orders: one trial in the given order, then two by scaled time; each comes twice."""
    scaled = iter(sorted(measured, key=_steady_score))
    for trial in measured:
        yield trial
        yield from islice(scaled, 2)


def nearly_as_fast(fastest: Trial, trials: Iterable[Trial]) -> list[Trial]:
    """The trials not far behind the fastest; times of a slow machine are scaled back."""
    far = MAX_BEHIND * _steady_score(fastest)
    return [trial for trial in by_score(trials) if _steady_score(trial) <= far]


def measurement_key(trial: Trial) -> tuple[str, tuple[float, ...]]:
    """The same value for all trials that share a binary and its measurement."""
    return trial.binary_sha256, trial.measurement.samples_ms if trial.measurement else ()


def _steady_score(trial: Trial) -> float:
    ratio = trial.measurement.control_ratio if trial.measurement else None
    return (trial.score or 0.0) / max(1.0, ratio or 1.0)


def is_unsteady(trials: Iterable[Trial]) -> bool:
    """True if configurations that were timed again during the search often took another time."""
    ratios = [trial.measurement.control_ratio for trial in trials if trial.measurement]
    unsteady = [abs(ratio - 1) > UNSTEADY for ratio in ratios if ratio is not None]
    return sum(unsteady) > UNSTEADY_SHARE * len(unsteady)


def usual_finalists(trials: Iterable[Trial], named: Collection[Config]) -> list[Trial]:
    """The fastest trials, as many as take part: one beside named configurations, which were chosen before."""
    return fastest_trials(trials, 1 if named else MAX_FINALISTS)


def choose_in_time(
    context: TuningContext,
    trials: Iterable[Trial],
    named: Collection[Config],
    needed: Sequence[Trial],
    time: LastRoundTime,
) -> list[Trial]:
    """Choose the needed trials, and as many of the best as a time limit allows."""
    trials, half = list(trials), time.round.share(2)  # the choice may take half of the time
    chosen = usual_finalists(trials, named)
    if not named and context.objective is Objective.TIME and is_unsteady(trials):
        chosen = fastest_trials(trials, MAX_CANDIDATES)
        if len(chosen) > MAX_FEW:
            in_time = finalists_in_time(chosen, chosen[:1], half.left_s())
            chosen = _preselect(context, in_time, half)
    distinct = list({trial.config: trial for trial in (chosen[0], *needed)}.values())
    left_s = time.round.left_s() if time.has_time_limit else math.inf
    return finalists_in_time(chosen, distinct, left_s)


def _preselect(context: TuningContext, trials: Sequence[Trial], deadline: Deadline) -> list[Trial]:
    """Time the trials in a few turns and return the fastest, in this order.

    Trials that fail here follow, so that the last round rejects them and reports why if it has the time.
    """
    of_config = {trial.config: trial for trial in trials}
    builds, rejected = context.build(of_config, COMPILING)
    series = []
    for config, built in builds.items():
        measured = of_config[config].measurement
        batch = measured.batch if measured else 1
        series.append(Series(built, batch, repeatable=batch > 1))
    Turns(context, series, rejected, min, "choosing finalists, round").run(SELECTION_ROUNDS, deadline)
    failed = [trial for trial in trials if trial.config in rejected]
    left = [timed for timed in series if timed.config not in rejected]
    ranked = [of_config[timed.config] for timed in sorted(left, key=lambda timed: median(timed.values_ms))]
    return ranked[:MAX_FINALISTS] + failed


def finalists_in_time(chosen: Sequence[Trial], needed: Sequence[Trial], left_s: float) -> list[Trial]:
    """The finalists that the time allows, in the order of `fastest_trials`, and all needed ones.

    A finalist takes about as long as its trial did: it is verified and timed again.
    """
    left_s -= sum(trial.cost_s for trial in needed)
    kept = []
    for trial in chosen:
        if trial not in needed:
            left_s -= trial.cost_s
        if trial in needed or left_s > 0:
            kept.append(trial)
    return kept + [trial for trial in needed if trial not in kept]
