"""The last round: measures and checks the best few of a search again, until none of them fails."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.core.records import NOISY, Config
from autotune.core.trials import WRONG, Failure, Measurement, Trial
from autotune.errors import ExpressionError, SetupError
from autotune.evaluation.journal import LastRound
from autotune.processes.machine_load import CpuTimes
from autotune.searchers.base import SourceResults
from autotune.tuning.context import TuningContext
from autotune.tuning.finalists import affordable, choose_finalists, finalists, nearly_as_fast
from autotune.tuning.finals import remeasure
from autotune.tuning.groups import leaders
from autotune.tuning.limits import NO_LIMITS, LastRoundLimits
from autotune.tuning.stored_checks import SkippedChecks, StoredChecks, late_text
from autotune.tuning.ties import winner_and_ties

MAX_BESIDE = 1  # finalists in addition to the needed ones


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
    skipped: tuple[SkippedChecks, ...] | None  # of each; None: an earlier search checked them


def last_round(
    context: TuningContext,
    searched: Searched,
    trials: Mapping[Config, Trial],
    checks: StoredChecks,
    deadline_s: float,
) -> tuple[dict[Config, Trial], Decision]:
    """Measure the finalists and the default in turns; if some fail, start again with the next best.

    A journaled last round is reused if the same finalists passed it.

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
    while True:
        now_s = time.perf_counter()
        if searched.needed:
            best = finalists(trials.values(), MAX_BESIDE)
        else:
            best = choose_finalists(context, trials.values(), (now_s + deadline_s) / 2)
        others = nearly_as_fast(best[0], [trials[config] for config in searched.needed])
        named = (best[0], *leaders(context.task.space, trials.values()), default, *others)
        needed = list({trial.config: trial for trial in named}.values())
        chosen = affordable(best, needed, deadline_s - now_s if is_strict else math.inf)
        if known := _journaled(context, checks, best if is_strict else (), needed, chosen):
            return trials, known
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
    outcome = remeasure(context, chosen, deadline_s, limits.seeds)
    if outcome.rejected:
        return dict(outcome.rejected)
    stored = winner_and_ties(chosen, outcome.measurements, context.objective)
    end_s = max(deadline_s, time.perf_counter()) + limits.checks_s
    if failures := checks.check(context, [trial.config for trial in stored], end_s):
        return failures
    if outcome.late:
        context.observer.warn(late_text(outcome.late))
    skipped = (checks.passed[trial.config] for trial in stored)
    late = (replace(one, late=(*outcome.late, *one.late)) for one in skipped)
    return Decision(outcome.measurements, stored, tuple(late))


def _journal(context: TuningContext, found: Decision) -> None:
    """Write a last round to the journal, with the configurations that passed all checks."""
    pairs = zip(found.stored, found.skipped or (), strict=True)
    checked = frozenset(trial.key for trial, one in pairs if not one.late)
    context.journal.append_finals(LastRound(dict(found.measurements), checked, not context.skips_sanitizer))


def _journaled(
    context: TuningContext,
    checks: StoredChecks,
    allowed: Sequence[Trial],
    needed: Sequence[Trial],
    chosen: Sequence[Trial],
) -> Decision | None:
    """The decision of a journaled last round that can stand for one of these finalists; None without one.

    Args:
        context: The open run.
        checks: The checks before storing.
        allowed: A last round of any of these, and of all needed ones, counts as well.
        needed: Finalists that take part in any case.
        chosen: The finalists.
    """
    known = {trial.key: trial for trial in (*allowed, *needed, *chosen)}
    exact, least = ({trial.key for trial in group} for group in (chosen, needed))
    for found in reversed(context.journal.finals.values()):
        keys = found.measurements.keys()
        if keys != exact and not (allowed and least <= keys <= known.keys()):
            continue
        measurements = _reusable(context, known, found.measurements)
        if not measurements:
            continue
        stored = winner_and_ties([known[key] for key in measurements], measurements, context.objective)
        if _passed_all(context, found, stored):
            skipped = tuple(checks.passed.get(trial.config, SkippedChecks()) for trial in stored)
            return Decision(measurements, stored, skipped if stored[0].config in checks.passed else None)
    return None


def _passed_all(context: TuningContext, found: LastRound, stored: Sequence[Trial]) -> bool:
    """True if these passed every check that this search asks for, of which a search may leave out some."""
    has_sanitizers = found.has_sanitizers or context.skips_sanitizer
    return has_sanitizers and found.checked.issuperset(trial.key for trial in stored)


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
