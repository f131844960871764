"""The end of a search: the last round, whose result is stored in the cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from autotune.core.outcomes import combined
from autotune.core.records import Config, Entry
from autotune.core.trials import Objective, Trial, pareto_front
from autotune.errors import Overtaken
from autotune.processes.machine_load import cpu_times
from autotune.serving.cache import record_path, store
from autotune.serving.cache_reader import CacheReader
from autotune.serving.device_records import walk
from autotune.tuning.cache_entry import choose_measured, kernel_record
from autotune.tuning.context import TuningContext
from autotune.tuning.finalists import MAX_FINALISTS, by_score, measurement_key, usual_finalists
from autotune.tuning.groups import compare_groups
from autotune.tuning.last_round import Decision, LastRoundSetting, run_last_round, time_finalists
from autotune.tuning.result import SearchResult
from autotune.tuning.winner_checks import WinnerChecks


def finish_search(
    context: TuningContext, setting: LastRoundSetting, checks: WinnerChecks | None = None
) -> SearchResult:
    """Measure the best few again in a last round, and store the winner in the cache.

    `checks` have the outcomes of configurations that were checked before.

    Raises:
        SetupError: The default fails.
        CacheError: The cache cannot be written.
    """
    checks = WinnerChecks() if checks is None else checks
    trials: dict[Config, Trial] = {}  # as the round before left them, with its failures marked
    while True:
        cached = _evaluate_cached(context, setting.root)
        candidates = {**_known_trials(context), **trials}
        trials, decision = run_last_round(context, setting, candidates, checks)
        result = _search_result(context, setting, trials, decision, cached)
        others = _other_times(context, setting, trials, decision)
        record = kernel_record(result, others, setting.seed, context.policy)
        seen = () if cached is None else (cached,)
        try:
            store(setting.root, context.task.device, record, seen=seen)
        except Overtaken:  # another search has stored a result: it takes part in a new last round
            setting = replace(setting, time=decision.time)
            continue
        return result


def begin_finish(context: TuningContext, setting: LastRoundSetting) -> list[Config]:
    """Measure the best few again, for a `finish_search` that follows; return its likely winner and ties."""
    _evaluate_cached(context, setting.root)
    return [trial.config for trial in time_finalists(context, setting, _known_trials(context))]


def _known_trials(context: TuningContext) -> dict[Config, Trial]:
    """The trials of the search, and the best earlier ones of the journal."""
    earlier = islice(_journaled_trials(context), MAX_FINALISTS)
    return {trial.config: trial for trial in earlier} | context.ledger.trials


def _evaluate_cached(context: TuningContext, root: Path) -> Entry | None:
    """Evaluate the configuration that the cache serves for this problem: no worse result may replace it."""
    entry, space = context.task.cached_entry(root), context.task.space
    if entry is not None and (row := space.index(entry.config)) is not None:
        context.evaluator.evaluate_beside_budget(space.config(row))  # in the space's order of names
    return entry


def _journaled_trials(context: TuningContext) -> Iterator[Trial]:
    """The journal's trials from any search whose content key still holds, fastest first."""
    tried = context.ledger.trials
    rows = (replace(row, objective=context.objective) for row in context.journal.trials.values())
    scored = (context.scoring.scored(row) for row in rows if row.config in context.task.space)
    for trial in by_score(scored):
        now = tried.get(trial.config)  # its key need not be computed again
        if trial.key == (context.maker.key_now(trial.config) if now is None else now.key):
            yield trial


def _search_result(
    context: TuningContext,
    setting: LastRoundSetting,
    trials: Mapping[Config, Trial],
    decision: Decision,
    cached: Entry | None,
) -> SearchResult:
    """Sum up the search; `trials` has the best earlier ones of the journal, `cached` is what was served."""
    task, objective, ledger = context.task, context.objective, context.ledger
    winner, *ties = decision.stored
    assert decision.estimate is not None  # the last round of a search asks for it
    instance = context.maker.make(winner.config)
    again = {measurement_key(trial) for trial in trials.values() if trial.key in decision.measurements}
    was_served = cached is not None and cached.config == winner.config
    return SearchResult(
        task=task,
        engine=setting.label,
        winner=winner,
        final=decision.measurements[winner.key],
        default=decision.measurements[trials[task.spec.default].key],
        ties=tuple(trial.config for trial in ties),
        unchecked_ties=tuple(trial.config for trial in decision.ties_left),
        groups=compare_groups(task.space, trials.values(), decision.measurements, objective),
        trials=tuple(trials[config] for config in ledger.trials),
        resumed=ledger.resumed,
        beside_budget=context.evaluator.beside_budget,
        time_was_over=context.evaluator.time_was_over,
        timed_again=frozenset(trial.config for trial in trials.values() if measurement_key(trial) in again),
        lacked_time=setting.time.has_time_limit
        and any(
            measurement_key(trial) not in again for trial in usual_finalists(trials.values(), setting.named)
        ),
        journal=context.journal.path,
        cache_file=Path(record_path(str(setting.root), task.device.slug, task.spec.kernel)),
        was_served=was_served,
        objective=objective,
        objective_name=context.scoring.name,
        metrics=tuple(context.scoring.metrics(trials[config]) for config in ledger.trials),
        priors=setting.priors,
        stopping_estimate=decision.estimate,
        uncompared=instance.uncompared(context.worker.compared),
        front=() if objective in (Objective.TIME, Objective.OWN) else pareto_front(trials.values()),
        search_seconds=setting.seconds,
        seconds=ledger.spent_s,
        cores_of_others=setting.cpu_at_start.cores_of_others(cpu_times()),
        data_sha256=instance.workload.data_sha256,
        checks=combined(decision.outcomes),
    )


def _other_times(
    context: TuningContext, setting: LastRoundSetting, trials: Mapping[Config, Trial], decision: Decision
) -> tuple[tuple[Config, float], ...]:
    """Times of other configurations to store with the winner; empty unless the search minimises time."""
    if context.objective is not Objective.TIME:
        return ()
    task = context.task
    records = walk(CacheReader(), [str(setting.root)], task.spec.kernel, skip_damaged=True)
    others = (device_record.record for device_record in records if device_record.folder != task.device.slug)
    bests = {entry.config for record in others for entry in record.entries}
    kept = bests | {task.spec.default, *setting.named, *task.served_elsewhere}
    return choose_measured(trials.values(), decision.measurements, decision.stored[0], kept)
