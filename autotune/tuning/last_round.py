"""The last round: measures and checks the best few of a search again, until none of them fails."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
from autotune.tuning.finals import FRESH_INPUTS, Finals, remeasure
from autotune.tuning.groups import leaders
from autotune.tuning.limits import NO_LIMITS, LastRoundLimits
from autotune.tuning.stored_checks import SkippedChecks, StoredChecks, late_text, sanitizers
from autotune.tuning.ties import winner_and_ties

MAX_BESIDE = 1  # finalists in addition to the needed ones
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
    skipped: tuple[SkippedChecks, ...]  # of each
    unchecked: tuple[Trial, ...]  # further ties, which are not stored


def last_round(
    context: TuningContext,
    searched: Searched,
    trials: Mapping[Config, Trial],
    checks: StoredChecks,
    deadline_s: float,
) -> tuple[dict[Config, Trial], Decision]:
    """Measure the finalists and the default in turns; if some fail, start again with the next best.

    A journaled last round is reused if the same finalists passed it, or if no trial came after it.

    Args:
        context: The open run.
        searched: The search.
        trials: The candidates.
        checks: The checks before storing.
        deadline_s: When it should end, on the clock of `time.perf_counter`.

    Returns:
        The trials, with failures of the last round marked, and the decision.

    Raises:
        SetupError: The default fails.
    """
    trials = dict(trials)
    default = trials[context.task.spec.default]
    is_strict = searched.limits.is_strict
    checks.recall(context, trials.values())
    while True:
        now_s = time.perf_counter()
        first = finalists(trials.values(), MAX_BESIDE if searched.needed else MAX_FINALISTS)
        others = nearly_as_fast(first[0], [trials[config] for config in searched.needed])
        ahead = [*leaders(context.task.space, trials.values()), default, *others]
        rounds = _concluded(context, len(first) if not searched.needed else 0)
        measured = _journaled(context, rounds, by_score(trials.values()), ahead)
        if not measured:
            best = first
            if not searched.needed:
                best = choose_finalists(context, trials.values(), (now_s + deadline_s) / 2)
            needed = list({trial.config: trial for trial in (best[0], *ahead)}.values())
            chosen = affordable(best, needed, deadline_s - now_s if is_strict else math.inf)
            allowed, least = ((*best, *needed), needed) if is_strict else (chosen, chosen)
            measured = _journaled(context, reversed(context.journal.finals.values()), allowed, least)
        if measured:
            chosen = [trial for trial in trials.values() if trial.key in measured]
            found = judge(context, chosen, Finals(measured, {}, ()), checks, deadline_s, searched.limits)
        else:
            found = decide(context, chosen, checks, deadline_s, searched.limits)
        if isinstance(found, Decision):
            _journal(context, found)
            return trials, found
        if default.config in found:
            raise SetupError(f"the default fails in the last round: {found[default.config].detail}")
        for trial in chosen:
            if trial.config in found:
                trials[trial.config] = mark_failed(context, trial, found[trial.config])


def decide(
    context: TuningContext,
    chosen: Sequence[Trial],
    checks: StoredChecks,
    deadline_s: float = math.inf,
    limits: LastRoundLimits = NO_LIMITS,
) -> Decision | dict[Config, Failure]:
    """Verify the finalists on fresh inputs, time them in turns, and check those that will be stored.

    Args:
        context: The open run.
        chosen: The finalists.
        checks: The checks before storing.
        deadline_s: As for `remeasure`.
        limits: Limits of the checks and the inputs.

    Returns:
        The decision; or why some failed.
    """
    context.observer.last_round(len(chosen))
    likely = by_score(chosen)[: 1 + MAX_TIES]
    end_s = max(deadline_s, time.perf_counter()) + limits.checks_s
    with checks.begun(context, [trial.config for trial in likely], end_s):
        outcome = remeasure(context, chosen, deadline_s, limits.seeds)
        if outcome.rejected:
            return dict(outcome.rejected)
        return judge(context, chosen, outcome, checks, deadline_s, limits)


def judge(
    context: TuningContext,
    chosen: Sequence[Trial],
    outcome: Finals,
    checks: StoredChecks,
    deadline_s: float,
    limits: LastRoundLimits,
) -> Decision | dict[Config, Failure]:
    """Check the winner of measured finalists and its ties, as `decide` does."""
    tied = winner_and_ties(chosen, outcome.measurements, context.objective)
    stored, unchecked = tied[: 1 + MAX_TIES], tied[1 + MAX_TIES :]
    end_s = max(deadline_s, time.perf_counter()) + limits.checks_s
    if failures := checks.check(context, [trial.config for trial in stored], end_s):
        return failures
    if outcome.late:
        context.observer.warn(late_text(outcome.late))
    skipped = (checks.passed[trial.config] for trial in stored)
    late = (replace(one, late=(*outcome.late, *one.late)) for one in skipped)
    return Decision(outcome.measurements, stored, tuple(late), unchecked)


def _journal(context: TuningContext, found: Decision) -> None:
    """Write a last round to the journal, unless it has the same with as many checks."""
    passed = {trial.key: one for trial, one in zip(found.stored, found.skipped, strict=True)}
    checked = frozenset(key for key, one in passed.items() if not one.late)
    on_cpu = {key: one.on_cpu for key, one in passed.items() if one.on_cpu}
    broken = tuple(dict.fromkeys(tool for one in found.skipped for tool in one.broken))
    is_fresh = all(FRESH_INPUTS not in one.late for one in found.skipped)
    row = LastRound(dict(found.measurements), checked, sanitizers(context), is_fresh, on_cpu, broken)
    known = context.journal.finals.get(tuple(sorted(row.measurements)))
    has_tools = known is not None and row.sanitizers in (None, known.sanitizers)
    if not (known and has_tools and known.measurements == row.measurements and known.checked >= checked):
        context.journal.append_finals(row)


def _concluded(context: TuningContext, least: int) -> Iterator[LastRound]:
    """The latest last round of the journal, if no trial came later and it has at least so many finalists.

    Another choice among the same trials would only differ by chance.
    """
    if context.journal.is_concluded:
        latest = next(reversed(context.journal.finals.values()))
        if len(latest.measurements) >= least:
            yield latest


def _journaled(
    context: TuningContext, rounds: Iterable[LastRound], allowed: Iterable[Trial], needed: Iterable[Trial]
) -> dict[str, Measurement]:
    """The measurements of the first of these last rounds that can be reused; empty without one.

    Its finalists have to be allowed, and all needed ones have to be among them.
    """
    by_key, least = {trial.key: trial for trial in allowed}, {trial.key for trial in needed}
    for found in rounds:
        if not found.is_fresh or not least <= found.measurements.keys() <= by_key.keys():
            continue
        if measurements := _reusable(context, by_key, found.measurements):
            return measurements
    return {}


def _reusable(
    context: TuningContext, known: Mapping[str, Trial], found: Mapping[str, Measurement]
) -> dict[str, Measurement]:
    """Journaled measurements with the objective's values; none if one was noisy or lacks what these need."""
    try:
        valued = {key: context.scoring.valued(known[key], measured) for key, measured in found.items()}
    except ExpressionError:
        return {}
    is_good = all(one.score(context.objective) and (one.noise or 0.0) <= NOISY for one in valued.values())
    return valued if is_good else {}


def mark_failed(context: TuningContext, trial: Trial, failure: Failure) -> Trial:
    """Mark a trial as failed; only wrong results are journaled: the machine may have caused others."""
    failed = replace(trial, status=failure.status, detail=failure.detail, failed_last_round=True)
    if failure.status in WRONG:
        context.journal.append(failed)
    return failed
