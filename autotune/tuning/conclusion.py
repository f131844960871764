"""The end of a search: the last round, and its result in the cache."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from autotune.core.records import Config, Entry
from autotune.core.stages import Stage
from autotune.core.trials import WRONG, Failure, Measurement, Objective, Trial, pareto_front
from autotune.errors import ExpressionError, Overtaken, SetupError
from autotune.evaluation.journal import LastRound
from autotune.processes.machine_load import CpuTimes, cpu_times
from autotune.searchers.base import SourceResults, StoppingEstimate
from autotune.serving.cache import record_path, store
from autotune.serving.device_records import foreign_bests
from autotune.tuning.cache_entry import kernel_record, measured
from autotune.tuning.context import TuningContext
from autotune.tuning.finals import (
    MAX_FINALISTS,
    Finals,
    affordable,
    by_score,
    choose_finalists,
    finalists,
    indistinguishable,
    is_final,
    measured_binary,
    remeasure,
    winner_and_ties,
)
from autotune.tuning.fresh_inputs import SEEDS
from autotune.tuning.groups import compare, leaders
from autotune.tuning.result import Result
from autotune.tuning.stored_checks import Gaps, check_configurations, checks_text, late_text

MAX_LAST_ROUND_S = 30.0  # without a time limit, where the search took less
MAX_BESIDE = 2  # finalists beside configurations that take part in any case
CHECKS_SHARE = 0.1  # of the time limit, for the checks before storing, beside what the last round leaves
MIN_CHECKS_S = 3.0


@dataclass(frozen=True)
class Limits:
    """What the last round may take: time in seconds, and inputs by their seeds."""

    round_s: float | None = None  # None: as long as the search took, or MAX_LAST_ROUND_S
    checks_s: float = math.inf  # for the checks before storing, beside what the round leaves
    seeds: tuple[int, ...] = SEEDS  # as in `remeasure`


@dataclass(frozen=True)
class Searched:
    """A search at its end: what it took, what its result says of it, and what the last round may take."""

    root: Path  # the cache folder
    label: str  # the engine and its strategy
    seed: int
    seconds: float
    began: CpuTimes
    limits: Limits
    sources: tuple[SourceResults, ...] = ()  # what it started from


def checks_time_s(limit_s: float | None) -> float:
    """Time for the checks before storing, beside what the last round leaves of a time limit."""
    return math.inf if limit_s is None else max(MIN_CHECKS_S, CHECKS_SHARE * limit_s)


def conclude(
    context: TuningContext,
    searched: Searched,
    needed: Sequence[Config] = (),
    passed: dict[Config, Gaps] | None = None,
) -> Result:
    """Measure the best few again in a last round, and store the winner in the cache.

    Args:
        context: The open run, with the default and all others evaluated.
        searched: The search.
        needed: Configurations that take part in the last round, and are stored, in any case.
        passed: Configurations that have passed the checks before storing, each with what could not be
            checked; those that pass here are added.

    Raises:
        SetupError: The default fails.
        WriteError: The cache cannot be written.
    """
    root, limits = searched.root, searched.limits
    round_s = max(MAX_LAST_ROUND_S, searched.seconds) if limits.round_s is None else limits.round_s
    until_s = time.perf_counter() + round_s
    while True:
        cached = _evaluate_cached(context, root)
        earlier = islice(_journaled_trials(context), MAX_FINALISTS)
        trials = {trial.config: trial for trial in earlier} | context.evaluator.trials
        known = {} if passed is None else passed
        measurements, gaps = _last_round(context, trials, needed, known, until_s, limits)
        result = _result(context, searched, trials, measurements, gaps, cached, is_alone=not needed)
        others = _other_times(context, root, result.winner, trials, measurements, needed)
        record = kernel_record(result, others, searched.seed, context.policy)
        with suppress(Overtaken):  # another search stored a result: let that take part, too
            store(root, context.task.device, record, seen=() if cached is None else (cached,))
            return result


def _evaluate_cached(context: TuningContext, root: Path) -> Entry | None:
    """Evaluate what the cache serves for this problem, so that no worse result replaces it."""
    entry = context.task.cached_entry(root)
    if entry is not None and entry.config in context.task.space:
        context.evaluator.admit(entry.config, charged=False)
    return entry


def _result(
    context: TuningContext,
    searched: Searched,
    trials: Mapping[Config, Trial],
    measurements: Mapping[str, Measurement],
    known_gaps: Mapping[Config, Gaps],
    cached: Entry | None,
    *,
    is_alone: bool,
) -> Result:
    """Choose the winner and sum up what the search found.

    Args:
        context: The open run.
        searched: The search.
        trials: Those of this search, and the best of the journal's earlier ones.
        measurements: Those of the last round, by content key.
        known_gaps: What could not be checked of each configuration that this search has checked; the winner
            is not among them if its last round is one of the journal.
        cached: What the cache folder serves for this problem so far.
        is_alone: Whether it is not a part of a sweep.
    """
    task, objective, evaluator = context.task, context.objective, context.evaluator
    winner = _best(measurements, context, trials)
    final = measurements[winner.key]
    configs = {trial.key: trial.config for trial in trials.values()}
    best = finalists(trials.values())
    again = {measured_binary(trial) for trial in trials.values() if trial.key in measurements}
    instance = context.maker.make(winner.config)
    ties = tuple(
        configs[key]
        for key, measurement in measurements.items()
        if key != winner.key and indistinguishable(final, measurement, objective)
    )
    was_served = cached is not None and cached.config == winner.config
    gaps = [known_gaps.get(config, Gaps()) for config in (winner.config, *ties)]
    if winner.config in known_gaps:
        checks = checks_text(context, gaps)
    elif cached is not None and was_served:
        checks = cached.provenance.checks
    else:
        checks = "in an earlier search"
    return Result(
        task=task,
        engine=searched.label,
        winner=winner,
        final=final,
        default=measurements[trials[task.spec.default].key],
        ties=ties,
        groups=compare(task.space, trials.values(), measurements, objective),
        trials=tuple(trials[config] for config in evaluator.trials),
        resumed=evaluator.resumed,
        time_was_over=evaluator.time_was_over,
        timed_again=frozenset(one.config for one in trials.values() if measured_binary(one) in again),
        lacked_time=is_alone
        and searched.limits.round_s is not None
        and any(measured_binary(one) not in again for one in best),
        journal=context.journal.path,
        cache_file=Path(record_path(str(searched.root), task.device.slug, task.spec.kernel)),
        was_served=was_served,
        objective=objective,
        objective_name=context.scoring.name,
        metrics=tuple(context.scoring.metrics(trials[config]) for config in evaluator.trials),
        sources=searched.sources,
        stopping_estimate=_stopping_estimate(context, winner, trials, is_alone),
        uncompared=instance.uncompared(context.worker.compared),
        compares=bool(context.worker.compared),
        front=() if objective in (Objective.TIME, Objective.OWN) else pareto_front(trials.values()),
        search_seconds=searched.seconds,
        seconds=evaluator.spent_s,
        cores_of_others=searched.began.cores_of_others(cpu_times()),
        data_sha256=instance.problem.data_sha256,
        checks=checks,
        late=tuple(dict.fromkeys(name for gap in gaps for name in gap.late)),
    )


def _journaled_trials(context: TuningContext) -> Iterator[Trial]:
    """Trials of the journal, from any search, whose content key still holds; fastest first."""
    rows = (replace(row, objective=context.objective) for row in context.journal.trials.values())
    scored = (context.scoring.scored(row) for row in rows if row.config in context.task.space)
    yield from (trial for trial in by_score(scored) if context.maker.key_now(trial.config) == trial.key)


def _last_round(
    context: TuningContext,
    trials: dict[Config, Trial],
    required: Sequence[Config],
    passed: dict[Config, Gaps],
    until_s: float,
    limits: Limits,
) -> tuple[Mapping[str, Measurement], Mapping[Config, Gaps]]:
    """Measure the finalists and the default in turns until none of them fails.

    A finalist that fails is replaced in `trials` by its failed trial, and the next best moves up.

    Args:
        context: The open run.
        trials: Those to choose from.
        required: Configurations that take part if they have a time.
        passed: Those that passed the checks before storing, to which more are added.
        until_s: When it should end, on the clock of `time.perf_counter`.
        limits: With one for the round, fewer may take part, so that it ends in time.

    Returns:
        The measurements by content key, and what could not be checked of the configurations that this search
        has checked.
    """
    default = trials[context.task.spec.default]
    is_limited = limits.round_s is not None
    while True:
        now_s = time.perf_counter()
        if required:  # others than the best few take part
            best = finalists(trials.values(), MAX_BESIDE)
        else:
            best = choose_finalists(context, trials.values(), (now_s + until_s) / 2)
        others = (trials[config] for config in required if trials[config].score is not None)
        named = (*best[:1], *leaders(context.task.space, trials.values()), default, *others)
        needed = list({trial.config: trial for trial in named}.values())
        chosen = affordable(best, needed, until_s - now_s if is_limited else math.inf)
        journaled = _journaled_round(context, best if is_limited else (), needed, chosen)
        if journaled is not None:
            return journaled, passed
        context.observer.last_round(len(chosen))
        outcome = remeasure(context, chosen, until_s, limits.seeds)
        failures = outcome.rejected
        if not failures:
            stored = winner_and_ties(chosen, outcome.measurements, context.objective)
            checked = check_configurations(
                context,
                [trial.config for trial in stored if trial.config not in passed],
                max(until_s, time.perf_counter()) + limits.checks_s,
            )
            passed |= checked.passed
            failures = checked.failures
            if not failures:
                return outcome.measurements, _journal_round(context, outcome, stored, passed)
        if default.config in failures:
            raise SetupError(f"the default fails in the last round: {failures[default.config].detail}")
        for trial in chosen:
            if trial.config in failures:
                trials[trial.config] = failed(context, trial, failures[trial.config])


def _journal_round(
    context: TuningContext, outcome: Finals, stored: Sequence[Trial], passed: Mapping[Config, Gaps]
) -> Mapping[Config, Gaps]:
    """Write a last round to the journal; return what could not be checked of what is stored of it."""
    if outcome.late:
        context.observer.warn(late_text(outcome.late))
    gaps = {
        trial.config: replace(passed[trial.config], late=(*outcome.late, *passed[trial.config].late))
        for trial in stored
    }
    checked = frozenset(trial.key for trial in stored if not gaps[trial.config].late)
    found = LastRound(dict(outcome.measurements), checked, not context.skips_sanitizer)
    context.journal.append_finals(found)
    return gaps


def _journaled_round(
    context: TuningContext, allowed: Sequence[Trial], needed: Sequence[Trial], chosen: Sequence[Trial]
) -> Mapping[str, Measurement] | None:
    """The last round of an earlier search with the same finalists, or with others that are allowed.

    What would be stored of it must have passed all checks then: some may have been left out, or no time may
    have been left for them.
    """
    by_key = {trial.key: trial for trial in (*allowed, *needed, *chosen)}
    exact, most, least = ({trial.key for trial in group} for group in (chosen, (*allowed, *needed), needed))
    for keys, found in reversed(context.journal.finals.items()):
        is_same = set(keys) == exact or (bool(allowed) and least <= set(keys) <= most)
        valued = _valued(context, by_key, found.measurements) if is_same else {}
        if valued and all(is_final(measured, context.objective) for measured in valued.values()):
            stored = winner_and_ties([by_key[key] for key in keys], valued, context.objective)
            is_checked = found.has_sanitizers or context.skips_sanitizer
            if is_checked and found.checked.issuperset(trial.key for trial in stored):
                return valued
    return None


def _valued(
    context: TuningContext, by_key: Mapping[str, Trial], found: Mapping[str, Measurement]
) -> dict[str, Measurement]:
    """Journaled measurements with the value of the user's objective; none where it needs more of them."""
    try:
        return {key: context.scoring.valued(by_key[key], measured) for key, measured in found.items()}
    except ExpressionError:
        return {}


def _best(
    measurements: Mapping[str, Measurement], context: TuningContext, trials: Mapping[Config, Trial]
) -> Trial:
    key = min(measurements, key=lambda key: measurements[key].score(context.objective) or math.inf)
    return next(trial for trial in trials.values() if trial.key == key)


def failed(context: TuningContext, trial: Trial, failure: Failure) -> Trial:
    """Mark a trial as failed; only wrong results are journaled, as the machine may have caused the others."""
    failed = replace(trial, status=failure.status, detail=failure.detail, failed_last_round=True)
    if failure.status in WRONG:
        context.journal.append(failed)
    return failed


def _stopping_estimate(
    context: TuningContext, winner: Trial, trials: Mapping[Config, Trial], is_alone: bool
) -> StoppingEstimate:
    """Estimate what untried configurations promise; no time is below what the memory bandwidth allows.

    A search that is not alone is a part of a sweep, which has no use for estimates that take seconds.
    """
    floor_ms = context.maker.make(winner.config).floor_ms if context.objective is Objective.TIME else 0.0
    tried = context.evaluator.trials | {winner.config: winner}  # the winner may be of an earlier search
    valid = len(context.task.space)
    if len(tried) == valid:
        return StoppingEstimate(valid, valid, 0.0, 0.0)
    if not is_alone:
        return StoppingEstimate(len(tried), valid, None, None)
    context.observer.stage(Stage("estimating what the others promise"))
    from autotune.searchers.surrogate import stopping_estimate  # takes long to import

    return stopping_estimate(context.task.space, [trials[config] for config in tried], floor_ms)


def _other_times(
    context: TuningContext,
    root: Path,
    winner: Trial,
    trials: Mapping[Config, Trial],
    measurements: Mapping[str, Measurement],
    needed: Sequence[Config],
) -> tuple[tuple[Config, float], ...]:
    """Times of other configurations to store with the winner; only searches for time have them."""
    if context.objective is not Objective.TIME:
        return ()
    task = context.task
    kept = foreign_bests(root, task.device, task.spec.kernel) | {task.spec.default, *needed}
    return measured(trials.values(), measurements, winner, kept)
