"""One search from a target to a cached result, and one walk up a kernel's ladder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from autotune.core.records import Config, Entry
from autotune.core.trials import Failure, Measurement, Objective, Status, Trial, pareto_front
from autotune.errors import BudgetSpent, ExpressionError, InputError, Overtaken, SetupError
from autotune.searchers import default_strategy, learns_from_sources, make_searcher
from autotune.searchers.base import SourceResults
from autotune.searchers.surrogate import StoppingEstimate, stopping_estimate
from autotune.serving.cache import check_writable, objective_root, read_entry, store, writable_root
from autotune.serving.device_records import foreign_bests
from autotune.space import lint_source
from autotune.tuning.cache_entry import kernel_record, measured
from autotune.tuning.context import (
    ENERGY_POLICY,
    FULL_POLICY,
    POLICY,
    Observer,
    TuningContext,
    default_journal,
    open_context,
)
from autotune.tuning.finals import MAX_FINALISTS, by_score, field_of, indistinguishable, is_final, play
from autotune.tuning.groups import compare, leaders
from autotune.tuning.options import Options
from autotune.tuning.result import Result
from autotune.tuning.source_results import gather, summary
from autotune.tuning.task import TuningTask

TUNED = "tuned best"  # the last rung of a ladder


def search(
    task: TuningTask, options: Options, observer: Observer, priors: tuple[SourceResults, ...] | None = None
) -> Result:
    """Search, time the best few once more in turns, and store the winner in the cache.

    `priors` None: gathered here, if the options and the engine ask for them. Raises InputError for bad
    options, before anything is written, and SetupError when the default configuration itself fails.
    """
    engine, strategy = choose_engine(options, len(task.space))
    priors = _priors(task, options, engine) if priors is None else priors
    searcher = make_searcher(engine, strategy, priors=priors, stop_when_unlikely=options.stop_when_unlikely)
    strategy = strategy or default_strategy(engine)
    root = Path(objective_root(str(writable_root(options.cache)), options.objective.value))
    _require_valid_default(task)
    notes = [f"warning: {finding}" for finding in lint_source(task.space, task.source.text)]
    check_writable(root, task.device, task.spec.kernel)
    protocol = POLICY if options.objective is Objective.TIME else ENERGY_POLICY
    with open_context(task, options, observer, protocol) as context:
        trials = options.budget.trials
        total = None if trials is None else min(trials, len(task.space))
        observer.started(task, total, context.journal, "\n".join(filter(None, [*notes, summary(priors)])))
        _try_default(context)
        with suppress(BudgetSpent):
            searcher.search(task.space, context.evaluator, seed=options.seed)
        label = f"{engine}:{strategy}" if strategy else engine
        searched_s = context.evaluator.spent_s
        while True:
            served = _admit_cached(context, root)
            with suppress(Overtaken):
                return _settle(context, label, options.seed, root, observer, searched_s, priors, served)


def ladder(
    task: TuningTask, options: Options, observer: Observer, tuned: Config | None = None
) -> list[tuple[str, Trial]]:
    """Verify and time every landmark in the order of the space file, then the tuned configuration.

    Invalid ones are PRUNED trials. Raises SetupError when the default configuration itself fails.
    """
    landmarks = task.spec.landmarks
    if not landmarks:
        raise InputError(f"{task.spec.path}: has no landmarks; a ladder needs some")
    _require_valid_default(task)
    own = replace(options, journal=options.journal or default_journal(task, "ladder.jsonl"))
    with open_context(task, own, observer, FULL_POLICY) as context:
        steps = {landmark.name: landmark.config for landmark in landmarks}
        if tuned is not None:
            steps[TUNED] = tuned
        observer.started(task, len(steps), context.journal)
        _try_default(context)
        return list(zip(steps, context.evaluator(list(steps.values())), strict=True))


def choose_engine(options: Options, valid: int) -> tuple[str, str | None]:
    """The engine and strategy to use when none is named."""
    if options.engine is not None:
        return options.engine, options.strategy
    if options.strategy is not None:
        raise InputError(f"--strategy {options.strategy} needs --engine kernel_tuner or --engine optuna")
    if options.budget.trials is not None and options.budget.trials >= valid:
        return "exhaustive", None
    return ("optuna", "nsgaii_pareto") if options.objective is Objective.PARETO else ("surrogate", None)


def _priors(task: TuningTask, options: Options, engine: str) -> tuple[SourceResults, ...]:
    """What other devices and problems know, if the search is to be told and can make use of it."""
    if not (options.transfer and learns_from_sources(engine)):
        return ()
    return gather(task, options.cache, options.journal or default_journal(task))


def _require_valid_default(task: TuningTask) -> None:
    reasons = task.space.why_invalid(task.spec.default)
    if reasons:
        raise InputError(f"{task.spec.path}: default: not valid on {task.device.name}: {'; '.join(reasons)}")


def _try_default(context: TuningContext) -> None:
    """The default runs first: when it fails the setup is broken, not the configuration."""
    trial = context.evaluator.admit(context.task.spec.default, charged=True)
    if trial.status is not Status.OK:
        raise SetupError(
            f"{context.task.spec.source}: the default configuration fails on {context.task.device.name}: "
            f"{trial.status.value}: {trial.detail}"
        )


def _admit_cached(context: TuningContext, root: Path) -> tuple[Entry, ...]:
    """Let what the cache serves now, if anything, take part, so that a worse one never replaces it."""
    task, problem = context.task, context.task.space.problem
    entry = read_entry(str(root), task.device.slug, task.spec.kernel, problem.sizes, problem.dtype)
    if entry is not None and entry.config in task.space:
        context.evaluator.admit(entry.config, charged=False)
    return () if entry is None else (entry,)


def _settle(
    context: TuningContext,
    label: str,
    seed: int,
    root: Path,
    observer: Observer,
    searched_s: float,
    priors: tuple[SourceResults, ...],
    served: tuple[Entry, ...],
) -> Result:
    earlier = islice(_still_true(context), MAX_FINALISTS)
    trials = {trial.config: trial for trial in earlier} | context.evaluator.trials
    measurements = _last_round(context, trials, observer)
    by_key = {trial.key: trial for trial in trials.values()}
    winner = _best(measurements, context, trials)
    final = measurements[winner.key]
    ties = tuple(
        by_key[key].config
        for key, measurement in measurements.items()
        if key != winner.key and indistinguishable(final, measurement, context.objective)
    )
    default = measurements[trials[context.task.spec.default].key]
    kept = foreign_bests(root, context.task.device, context.task.spec.kernel) | {context.task.spec.default}
    is_time = context.objective is Objective.TIME
    others = measured(trials.values(), measurements, winner, kept) if is_time else ()
    front = () if is_time else pareto_front(trials.values())
    uncompared = context.maker.make(winner.config).uncompared(context.worker.compared)
    found = (winner, final, default, ties, others, front, uncompared)
    record = kernel_record(context.task, *found, label, seed, len(context.evaluator.trials), context.protocol)
    return Result(
        task=context.task,
        engine=label,
        winner=winner,
        final=final,
        default=default,
        ties=ties,
        groups=compare(context.task.space, trials.values(), measurements, context.objective),
        trials=tuple(trials[config] for config in context.evaluator.trials),
        resumed=context.evaluator.resumed,
        journal=context.journal.path,
        cache_file=store(root, context.task.device, record, seen=served),
        was_served=any(entry.config == winner.config for entry in served),
        objective=context.objective,
        priors=priors,
        stopping_estimate=_outlook(context, winner, trials),
        uncompared=uncompared,
        compares=bool(context.worker.compared),
        front=front,
        search_seconds=searched_s,
        seconds=context.evaluator.spent_s,
    )


def _outlook(context: TuningContext, winner: Trial, trials: Mapping[Config, Trial]) -> StoppingEstimate:
    """What is left to find; in time nothing beats the memory's bandwidth, where the space states the work."""
    floor_ms = context.maker.make(winner.config).floor_ms if context.objective is Objective.TIME else 0.0
    tried = context.evaluator.trials | {winner.config: winner}  # an earlier search may have found it
    return stopping_estimate(context.task.space, [trials[config] for config in tried], floor_ms)


def _still_true(context: TuningContext) -> Iterator[Trial]:
    """Trials in the journal, whichever search made them, that still hold; fastest first."""
    for trial in by_score(
        replace(row, objective=context.objective) for row in context.journal.trials.values()
    ):
        with suppress(ExpressionError):
            if trial.config in context.task.space and context.maker.make(trial.config).key == trial.key:
                yield trial


def _last_round(
    context: TuningContext, trials: dict[Config, Trial], observer: Observer
) -> Mapping[str, Measurement]:
    """Measure the finalists and the default in turns; who fails is struck, and the next move up."""
    default = trials[context.task.spec.default]
    while True:
        chosen = field_of(
            trials.values(), context.maker, context.pool, context.worker, context.timeout_s, context.objective
        )
        for trial in (*leaders(context.task.space, trials.values()), default):
            if trial not in chosen:
                chosen.append(trial)
        known = context.journal.finals.get(tuple(sorted(trial.key for trial in chosen)))
        if known is not None and all(is_final(found, context.objective) for found in known.values()):
            return known
        observer.last_round(len(chosen))
        outcome = play(
            chosen, context.maker, context.pool, context.worker, context.timeout_s, context.protocol
        )
        if default.key in outcome.rejected:
            raise SetupError(f"the default fails in the last round: {outcome.rejected[default.key].detail}")
        for trial in chosen:
            if trial.key in outcome.rejected:
                trials[trial.config] = _strike(context, trial, outcome.rejected[trial.key])
        if outcome.rejected:
            continue
        winner = _best(outcome.measurements, context, trials)
        failure = _sanitized(context, winner)
        if failure is None:
            context.journal.append_finals(outcome.measurements)
            return outcome.measurements
        if winner == default:
            raise SetupError(f"the default fails in the last round: {failure.detail}")
        trials[winner.config] = _strike(context, winner, failure)


def _best(
    measurements: Mapping[str, Measurement], context: TuningContext, trials: Mapping[Config, Trial]
) -> Trial:
    key = min(measurements, key=lambda key: measurements[key].score(context.objective) or math.inf)
    return next(trial for trial in trials.values() if trial.key == key)


def _sanitized(context: TuningContext, trial: Trial) -> Failure | None:
    """What the sanitizer finds in the sizes to verify, where there is a sanitizer and there are sizes."""
    instance = context.maker.make(trial.config)
    if context.sanitizer is None or not instance.checks:
        return None
    binary = context.pool.submit(instance.source, instance.options).result()
    return binary if isinstance(binary, Failure) else context.sanitizer.check(binary, instance.checks)


def _strike(context: TuningContext, trial: Trial, failure: Failure) -> Trial:
    """Take a trial out of the race; a wrong result is journaled, a crash may have been the machine's."""
    struck = replace(trial, status=failure.status, detail=failure.detail, failed_last_round=True)
    if failure.status in (Status.WRONG_RESULT, Status.OUT_OF_BOUNDS):
        context.journal.append(struck)
    return struck
