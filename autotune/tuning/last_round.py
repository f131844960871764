"""The last round: measures and checks the best few of a search again, until none of them fails."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.core.checks import FRESH_INPUTS, LATE, Checks, reasons, unchecked_text
from autotune.core.records import NOISY, Config
from autotune.core.trials import WRONG, Failure, Measurement, Trial
from autotune.errors import ExpressionError, SetupError
from autotune.evaluation.journal import LastRound
from autotune.processes.machine_load import CpuTimes
from autotune.searchers.base import SourceResults
from autotune.tuning.context import TuningContext
from autotune.tuning.finalists import (
    MAX_FINALISTS,
    affordable,
    by_score,
    choose_finalists,
    finalists,
    nearly_as_fast,
)
from autotune.tuning.finals import Finals, remeasure
from autotune.tuning.fresh_inputs import SEEDS
from autotune.tuning.groups import leaders
from autotune.tuning.limits import LastRoundLimits, TimeLeft
from autotune.tuning.stored_checks import StoredChecks, sanitizers
from autotune.tuning.ties import winner_and_ties

MAX_BEST = 1  # finalists in addition to the needed ones of a sweep
MAX_TIES = 5  # that are checked and stored


@dataclass(frozen=True)
class Searched:
    """A finished search: its cost, its provenance, and the limits of the last round."""

    root: Path  # the cache folder
    label: str  # the engine and its strategy
    seed: int
    seconds: float
    began: CpuTimes
    limits: LastRoundLimits
    sources: tuple[SourceResults, ...] = ()  # the results that it started from
    needed: tuple[Config, ...] = ()  # the times of these, a sweep's, are stored in any case


@dataclass(frozen=True)
class Decision:
    """A last round in which nothing failed."""

    measurements: Mapping[str, Measurement]  # of all finalists, by content key
    stored: tuple[Trial, ...]  # the winner, then those that cannot be told from it
    checks: tuple[Checks, ...]  # the record of each
    ties_left: tuple[Trial, ...]  # further ties, which are neither checked nor stored


def last_round(
    context: TuningContext,
    searched: Searched,
    trials: Mapping[Config, Trial],
    checks: StoredChecks,
    left: TimeLeft,
) -> tuple[dict[Config, Trial], Decision]:
    """Reuse a journaled last round, or measure one; if configurations fail, start again without them.

    Args:
        context: The open run.
        searched: The search.
        trials: The candidates.
        checks: The checks before storing.
        left: The time for the last round and its checks.

    Returns:
        The trials, with failures of the last round marked, and the decision.

    Raises:
        SetupError: The default fails.
    """
    trials, default = dict(trials), context.task.spec.default
    checks.recall(context, trials.values())
    while True:
        best = finalists(trials.values(), MAX_BEST if searched.needed else MAX_FINALISTS)
        asked = [trials[one] for one in (*searched.needed, *context.task.incumbents) if one in trials]
        swept = nearly_as_fast(best[0], asked)
        needed = [*leaders(context.task.space, trials.values()), trials[default], *swept]
        finals = _journaled(context, searched, trials.values(), best, needed)
        if finals is not None:
            chosen = [trial for trial in trials.values() if trial.key in finals.measurements]
            found = judge(context, chosen, finals, checks, left)
        else:
            chosen = _chosen(context, searched, trials.values(), best, needed, left.round_end_s)
            found = decide(context, chosen, checks, left, searched.limits.seeds)
        if isinstance(found, Decision):
            _journal(context, found)
            return trials, found
        if default in found:
            raise SetupError(f"the default fails in the last round: {found[default].detail}")
        for config, failure in found.items():
            trials[config] = mark_failed(context, trials[config], failure)


def _journaled(
    context: TuningContext,
    searched: Searched,
    trials: Iterable[Trial],
    best: Sequence[Trial],
    needed: Sequence[Trial],
) -> Finals | None:
    """The latest journaled round that can be reused.

    It has all needed finalists, and the best; with a time limit, the best one is enough. If no trial came
    after it, it may have others instead: another choice among the same trials would only differ by chance.
    """
    known = {trial.key: trial for trial in by_score(trials)}
    least = {trial.key for trial in needed}
    usual = least | {trial.key for trial in (best[:1] if searched.limits.is_strict else best)}
    most = least | {trial.key for trial in best}
    for number, found in enumerate(reversed(context.journal.finals.values())):
        keys = found.measurements.keys()
        is_last = context.journal.is_concluded and not number
        if is_last and (searched.needed or len(keys) >= len(best)):
            is_same = least <= keys <= known.keys()
        else:
            is_same = usual <= keys <= most
        if is_same and LATE not in found.fresh.values() and (valued := _valued(context, known, found)):
            return Finals(valued, {}, found.fresh)
    return None


def _valued(context: TuningContext, known: Mapping[str, Trial], found: LastRound) -> dict[str, Measurement]:
    """Journaled measurements with the objective's values; none if one was noisy or lacks what these need."""
    try:
        valued = {key: context.scoring.valued(known[key], one) for key, one in found.measurements.items()}
    except ExpressionError:
        return {}
    is_good = all(one.score(context.objective) and (one.noise or 0.0) <= NOISY for one in valued.values())
    return valued if is_good else {}


def _chosen(
    context: TuningContext,
    searched: Searched,
    trials: Iterable[Trial],
    best: Sequence[Trial],
    needed: Sequence[Trial],
    deadline_s: float,
) -> list[Trial]:
    """The finalists of a new round: the needed ones, and as many of the best as there is time for."""
    now_s = time.perf_counter()
    if not searched.needed:
        best = choose_finalists(context, trials, (now_s + deadline_s) / 2)
    distinct = list({trial.config: trial for trial in (best[0], *needed)}.values())
    return affordable(best, distinct, deadline_s - now_s if searched.limits.is_strict else math.inf)


def decide(
    context: TuningContext,
    chosen: Sequence[Trial],
    checks: StoredChecks,
    left: TimeLeft,
    seeds: Sequence[int] = SEEDS,
) -> Decision | dict[Config, Failure]:
    """Verify the finalists on fresh inputs, time them in turns, and check those that will be stored.

    Args:
        context: The open run.
        chosen: The finalists.
        checks: The checks before storing.
        left: The time for all this.
        seeds: As for `remeasure`.

    Returns:
        The decision; or why some failed.
    """
    context.observer.last_round(len(chosen))
    likely = by_score(chosen)[: 1 + MAX_TIES]
    with checks.begun(context, [trial.config for trial in likely], left.checks_end_s):
        finals = remeasure(context, chosen, left.round_end_s, seeds)
        return dict(finals.rejected) or judge(context, chosen, finals, checks, left)


def judge(
    context: TuningContext, chosen: Sequence[Trial], finals: Finals, checks: StoredChecks, left: TimeLeft
) -> Decision | dict[Config, Failure]:
    """Check the winner of measured finalists and its ties, as `decide` does."""
    tied = winner_and_ties(chosen, finals.measurements, context.objective)
    stored = tied[: 1 + MAX_TIES]
    with left.checking() as deadline_s:
        failures = checks.check(context, [trial.config for trial in stored], deadline_s)
    if missed := unchecked_text(reasons(finals.fresh)):
        context.observer.warn(missed)
    records = tuple({**checks.records[trial.config], **finals.fresh} for trial in stored if not failures)
    return failures or Decision(finals.measurements, stored, records, tied[1 + MAX_TIES :])


def _journal(context: TuningContext, found: Decision) -> None:
    """Write a last round to the journal, unless it has the same."""
    fresh = {name: one for name, one in found.checks[0].items() if name == FRESH_INPUTS}
    checked = {trial.key: record for trial, record in zip(found.stored, found.checks, strict=True)}
    row = LastRound(
        found.measurements, dict.fromkeys(found.measurements, fresh) | checked, sanitizers(context)
    )
    known = context.journal.finals.get(tuple(sorted(row.measurements)))
    if known is not None and row.sanitizers is None:  # they were left out, so they make no difference
        row = row._replace(sanitizers=known.sanitizers)
    if row != known:
        context.journal.append_finals(row)


def mark_failed(context: TuningContext, trial: Trial, failure: Failure) -> Trial:
    """Mark a trial as failed; only wrong results are journaled: the machine may have caused others."""
    failed = replace(trial, status=failure.status, detail=failure.detail, failed_last_round=True)
    if failure.status in WRONG:
        context.journal.append(failed)
    return failed
