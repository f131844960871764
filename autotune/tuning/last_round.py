"""The last round: measures and checks the best few of a search again, until none of them fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from autotune.core import timeline
from autotune.core.outcomes import FRESH_INPUTS, NO_TIME, Outcomes, unchecked_text
from autotune.core.records import NOISY, Config
from autotune.core.stages import Stage
from autotune.core.trials import WRONG, Failure, Measurement, Objective, Trial
from autotune.errors import ExpressionError, SetupError
from autotune.evaluation.journal import Journal, LastRound
from autotune.evaluation.worker import Worker
from autotune.processes.deadline import Deadline
from autotune.processes.machine_load import CpuTimes
from autotune.searchers.base import PriorResults, StoppingEstimate
from autotune.tuning.context import TuningContext
from autotune.tuning.finalists import by_score, choose_in_time, nearly_as_fast, usual_finalists
from autotune.tuning.groups import group_leaders
from autotune.tuning.limits import LastRoundTime
from autotune.tuning.remeasure import Remeasurement, remeasure
from autotune.tuning.sanitizer_checks import sanitizers
from autotune.tuning.ties import winner_and_ties
from autotune.tuning.winner_checks import EarlyChecks, WinnerChecks, early_checks

MAX_TIES = 5  # more ties are neither checked nor stored

Remeasure = Callable[[TuningContext, Sequence[Trial], Deadline], Remeasurement]
Estimate = Callable[[Trial], StoppingEstimate | None]
"""Estimates what untried configurations may gain on a winner."""


@dataclass(frozen=True)
class LastRoundSetting:
    """What a last round needs to know of its search, and the limits of the round."""

    root: Path  # the cache folder
    label: str  # the engine and its strategy
    seed: int
    seconds: float  # the time of the search
    cpu_at_start: CpuTimes
    time: LastRoundTime
    priors: tuple[PriorResults, ...] = ()  # the results that it used
    named: tuple[Config, ...] = ()  # chosen before: finalists if they are nearly as fast as the fastest
    measure_again: Remeasure = remeasure


@dataclass(frozen=True)
class Decision:
    """The end of a last round in which no configuration failed."""

    measurements: Mapping[str, Measurement]  # of finalists, by content key
    stored: tuple[Trial, ...]  # the winner, then its ties
    outcomes: tuple[Outcomes, ...]  # what the checks found, for each of `stored`
    ties_left: tuple[Trial, ...]  # further ties, which are neither checked nor stored
    estimate: StoppingEstimate | None  # what is left to find; None if nobody asks
    time: LastRoundTime  # for a round that repeats this one


@dataclass(frozen=True)
class Rejection:
    """The end of a last round in which configurations failed."""

    failures: Mapping[Config, Failure]
    time: LastRoundTime  # for the round without these


def begin_spare(context: TuningContext) -> None:
    """Begin the device process of the last round while the last trials run.

    None begins on a CPU, where that would disturb times, nor if the space sets the device's clock or power:
    only one process can hold these settings.
    """
    task, worker = context.task, context.worker
    if isinstance(worker, Worker) and task.device.kind == "gpu" and not task.spec.device:
        worker.begin_spare()


def run_last_round(
    context: TuningContext,
    setting: LastRoundSetting,
    trials: Mapping[Config, Trial],
    checks: WinnerChecks,
) -> tuple[dict[Config, Trial], Decision]:
    """Reuse a journaled last round, or measure one; if configurations fail, start again without them.

    Returns the trials, with failures of the last round marked, and the decision. Raises SetupError if the
    default fails.
    """
    trials, default = dict(trials), context.task.spec.default
    checks.recall(context, trials.values())
    estimate = partial(_estimate_untried, context, trials, setting.named)
    while True:
        chosen, known = _finalists(context, setting, trials)
        if known is not None:
            end = check_winners(context, chosen, known, checks, setting.time, estimate)
        else:
            end = remeasure_and_check(context, chosen, checks, setting.time, setting.measure_again, estimate)
        if isinstance(end, Decision):
            _journal_round(context, end)
            return trials, end
        if default in end.failures:
            raise SetupError(f"the default fails in the last round: {end.failures[default].detail}")
        for config, failure in end.failures.items():
            trials[config] = mark_failed(context.journal, trials[config], failure)
        setting = replace(setting, time=end.time)


def time_finalists(
    context: TuningContext, setting: LastRoundSetting, trials: Mapping[Config, Trial]
) -> tuple[Trial, ...]:
    """Measure and journal a last round, and return its winner and ties; another round checks them later.

    If a finalist fails, nothing is returned: the round that follows starts again without it.
    """
    chosen, measured = _finalists(context, setting, trials)
    if measured is None:
        context.observer.last_round(len(chosen))
        measured = setting.measure_again(context, chosen, setting.time.round)
        if measured.rejected:
            return ()
        outcomes = dict.fromkeys(measured.measurements, measured.on_fresh_inputs)
        row = LastRound(measured.measurements, outcomes, sanitizers(context))
        context.journal.append_last_round(row)
    return winner_and_ties(chosen, measured.measurements, context.objective)[: 1 + MAX_TIES]


def _finalists(
    context: TuningContext, setting: LastRoundSetting, trials: Mapping[Config, Trial]
) -> tuple[list[Trial], Remeasurement | None]:
    """The finalists, and the journaled round that can stand for a new one; None if there is none."""
    best = usual_finalists(trials.values(), setting.named)
    named = (*setting.named, *context.task.served_elsewhere)
    asked = nearly_as_fast(best[0], [trials[config] for config in named if config in trials])
    default = trials[context.task.spec.default]
    needed = [*group_leaders(context.task.space, trials.values()), default, *asked]
    known = _reusable_round(context, setting, trials.values(), best, needed)
    if known is not None:
        return [trial for trial in trials.values() if trial.key in known.measurements], known
    return choose_in_time(context, trials.values(), setting.named, needed, setting.time), None


def _reusable_round(
    context: TuningContext,
    setting: LastRoundSetting,
    trials: Iterable[Trial],
    best: Sequence[Trial],
    needed: Sequence[Trial],
) -> Remeasurement | None:
    """The latest journaled round that can stand for a new one; None if there is none.

    It measured all needed finalists. Beside them it measured, in the first case that fits:

    - all of the best, and nothing else;
    - under a time limit, the single best and perhaps others of the best, and nothing else;
    - if no trial came after the round, any trials, but as many as there are best ones: among the same trials,
      only chance chose these.
    """
    by_key = {trial.key: trial for trial in by_score(trials)}
    needed_keys, best_keys = ({trial.key for trial in chosen} for chosen in (needed, best))
    asked_keys, journal = needed_keys | best_keys, context.journal
    for number, last_round in enumerate(reversed(journal.last_rounds.values())):
        measured = last_round.measurements.keys()
        has_all_best = best_keys <= measured <= asked_keys
        has_some_in_time = setting.time.has_time_limit and best[0].key in measured and measured <= asked_keys
        is_after_all_trials = number == 0 and journal.is_concluded
        has_as_many = is_after_all_trials and measured <= by_key.keys() and len(measured) >= len(best)
        if (
            needed_keys <= measured
            and (has_all_best or has_some_in_time or has_as_many)
            and NO_TIME not in last_round.on_fresh_inputs.values()
            and (measurements := _with_values(context, by_key, last_round))
        ):
            return Remeasurement(measurements, {}, last_round.on_fresh_inputs)
    return None


def _with_values(
    context: TuningContext, by_key: Mapping[str, Trial], last_round: LastRound
) -> dict[str, Measurement]:
    """Journaled measurements with the objective's values; none if one was noisy or lacks what these need."""
    try:
        valued = {
            key: context.scoring.valued(by_key[key], measurement)
            for key, measurement in last_round.measurements.items()
        }
    except ExpressionError:
        return {}
    is_good = all(
        measurement.score(context.objective) and (measurement.noise or 0.0) <= NOISY
        for measurement in valued.values()
    )
    return valued if is_good else {}


def remeasure_and_check(
    context: TuningContext,
    chosen: Sequence[Trial],
    checks: WinnerChecks,
    time: LastRoundTime,
    measure_again: Remeasure = remeasure,
    estimate: Estimate = lambda _: None,
) -> Decision | Rejection:
    """Verify the finalists on fresh inputs, time them in turns, and check the winner and its ties.

    During the checks, `estimate` estimates what is left to find.
    """
    context.observer.last_round(len(chosen))
    likely = by_score(chosen)[: 1 + MAX_TIES]
    unchecked = [trial.config for trial in likely if trial.config not in checks.outcomes]
    with early_checks(context, unchecked, time.checks_deadline()) as early:
        remeasured = measure_again(context, chosen, time.round)
        if remeasured.rejected:
            return Rejection(remeasured.rejected, time)
        return check_winners(context, chosen, remeasured, checks, time, estimate, early)


def check_winners(
    context: TuningContext,
    chosen: Sequence[Trial],
    remeasured: Remeasurement,
    checks: WinnerChecks,
    time: LastRoundTime,
    estimate: Estimate = lambda _: None,
    early: EarlyChecks | None = None,
) -> Decision | Rejection:
    """Check the winner of remeasured finalists and its ties; `estimate` runs meanwhile."""
    tied = winner_and_ties(chosen, remeasured.measurements, context.objective)
    stored = tied[: 1 + MAX_TIES]
    with ThreadPoolExecutor(1, thread_name_prefix="estimate") as threads:
        estimated = threads.submit(estimate, stored[0])  # this process only waits for the checks
        deadline = time.checks_deadline()
        failures = checks.check(context, [trial.config for trial in stored], deadline, early)
        again = time.of_repetition(deadline)
        if not estimated.done():
            context.observer.stage(Stage("estimating the chance of a faster one"))
    if missed := unchecked_text(remeasured.on_fresh_inputs):
        context.observer.warn(f"the best: checked {missed}")
    if failures:
        return Rejection(failures, again)
    outcomes = tuple({**checks.outcomes[trial.config], **remeasured.on_fresh_inputs} for trial in stored)
    gain, ties_left = estimated.result(), tied[1 + MAX_TIES :]
    return Decision(remeasured.measurements, stored, outcomes, ties_left, gain, again)


def _estimate_untried(
    context: TuningContext, trials: Mapping[Config, Trial], named: Sequence[Config], winner: Trial
) -> StoppingEstimate:
    """Estimate the gain of untried configurations; no estimated time beats the memory bandwidth.

    The estimate takes seconds. It is left out if finalists were named: they were chosen by trials at other
    sizes, which it does not know.
    """
    tried = context.ledger.trials | {winner.config: winner}  # the winner may come from an earlier search
    valid = len(context.task.space)
    if len(tried) == valid:
        return StoppingEstimate(valid, valid, 0.0, 0.0)
    if named:
        return StoppingEstimate(len(tried), valid, None, None)
    floor_ms = context.maker.make(winner.config).floor_ms if context.objective is Objective.TIME else 0.0
    with timeline.span("import the model"):
        from autotune.searchers.surrogate import stopping_estimate  # takes long to import

    with timeline.span("estimate what is left to find"):
        return stopping_estimate(context.task.space, [trials[config] for config in tried], floor_ms)


def _journal_round(context: TuningContext, decision: Decision) -> None:
    """Write a last round to the journal, unless the journal has it."""
    fresh = {name: outcome for name, outcome in decision.outcomes[0].items() if name == FRESH_INPUTS}
    checked = dict(zip((trial.key for trial in decision.stored), decision.outcomes, strict=True))
    row = LastRound(
        decision.measurements, dict.fromkeys(decision.measurements, fresh) | checked, sanitizers(context)
    )
    journaled = context.journal.last_rounds.get(tuple(sorted(row.measurements)))
    if journaled is not None and row.sanitizers is None:  # left out, so they make no difference
        row = row._replace(sanitizers=journaled.sanitizers)
    if row != journaled:
        context.journal.append_last_round(row)


def mark_failed(journal: Journal, trial: Trial, failure: Failure) -> Trial:
    """Mark a trial as failed; only wrong results are journaled: the machine may have caused others."""
    failed = replace(trial, failure=failure, failed_last_round=True)
    if failure.status in WRONG:
        journal.append(failed)
    return failed
