"""Runs one search, from a task to a cached result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from autotune.core.records import ADOPTION, Config
from autotune.core.text import hint, size_text
from autotune.core.trials import Objective
from autotune.devices import INTERPRETER
from autotune.errors import InputError, NoMoreTrials
from autotune.processes.machine_load import CpuTimes, cpu_times
from autotune.searchers import (
    check_searcher,
    default_strategy,
    engine_names,
    learns_from_priors,
    make_searcher,
    strategy_names,
)
from autotune.searchers.base import PriorResults, ProposesAhead, Searcher, evaluate
from autotune.space import located, require_seen
from autotune.tuning.cache_entry import result_folder
from autotune.tuning.context import ENERGY_POLICY, FULL_POLICY, POLICY, TuningContext, open_context
from autotune.tuning.finish_search import finish_search
from autotune.tuning.first_trial import FirstTrial, in_thread
from autotune.tuning.journaled_task import with_journal
from autotune.tuning.last_round import LastRoundSetting, begin_spare
from autotune.tuning.limits import last_round_time, options_before_last_round
from autotune.tuning.observer import Observer, StageTimes
from autotune.tuning.options import Options
from autotune.tuning.prior_results import gather_priors, priors_text, recommended_configs
from autotune.tuning.remeasure import begin_references
from autotune.tuning.result import SearchResult
from autotune.tuning.sanitizer_checks import sanitizers
from autotune.tuning.several_devices import calibrate, calibration_configs, finish_on_two_devices
from autotune.tuning.shared_processes import Processes
from autotune.tuning.task import TuningTask
from autotune.tuning.timing_warnings import cpu_load_warnings, timing_warnings

if TYPE_CHECKING:  # needs the extra `cluster`
    from autotune.cluster.connection import Cluster

# proposals per compiler: more would slow the process that draws the inputs
PREFETCHED = 2


def search(
    task: TuningTask,
    options: Options,
    observer: Observer,
    priors: Collection[PriorResults] = (),
    cluster: Cluster | None = None,
    processes: Processes | None = None,
) -> SearchResult:
    """Search, measure the best few again in a last round, and store the winner in the cache.

    The priors, as `priors_of` gathers them, are read more than once, and may grow during the search. Without
    a cluster, it uses the task's device; without processes, which several searches may share, it has its own.

    Raises:
        InputError: The options or the space are wrong; nothing was written.
        SetupError: The default configuration fails.
        WriteError: The journal cannot be written.
        CacheError: The cache cannot be written.
    """
    engine, strategy = choose_engine(options, len(task.space))
    stops = options.stop_when_unlikely
    check_searcher(engine, strategy, stop_when_unlikely=stops)
    require_usable(task)
    journaled = with_journal(task, options)
    root = result_folder(journaled, options, observer)
    if journaled.scoring.needs_energy or options.energy:
        policy = ENERGY_POLICY
    else:
        policy = POLICY if journaled.scoring.objective is Objective.TIME else FULL_POLICY
    cpu_at_start = cpu_times()
    times = StageTimes(observer)
    make = partial(make_searcher, engine, strategy, priors=priors, stop_when_unlikely=stops)
    pending_searcher = in_thread("import and make the searcher", make)
    search_options = options_before_last_round(options)
    with open_context(journaled, search_options, times, policy, processes, cluster) as context:
        context.evaluator.on_spent = partial(begin_spare, context)
        context.evaluator.prefetch([task.spec.default])
        searcher = pending_searcher.result()
        note = priors_text(tuple(priors))
        explore(context, searcher, search_options, note, cpu_at_start, last_round_follows=True)
        strategy = strategy or default_strategy(engine)
        label = f"{engine}:{strategy}" if strategy else engine
        seconds, seed = context.ledger.spent_s, options.seed
        time = last_round_time(options, seconds)
        setting = LastRoundSetting(root, label, seed, seconds, cpu_at_start, time, tuple(priors))
        if context.fleet is None:
            result = finish_search(context, setting)
        else:
            result = finish_on_two_devices(context, context.fleet, setting)
        times.turn_to("ending the processes")
        if result.resumed < len(result.trials):  # without a new trial, the journal's stages stay
            context.journal.append_stages(times.seconds, timing_warnings(result), result.coverage)
    times.turn_to("")  # in the timeline, the last stage has the end of the processes
    return result


def explore(
    context: TuningContext,
    searcher: Searcher,
    options: Options,
    note: str,
    cpu_at_start: CpuTimes,
    enqueued: Iterable[Config] = (),
    *,
    warns: bool = True,
    last_round_follows: bool = False,
) -> None:
    """Try the default, then the searcher's proposals until the budget is spent.

    Args:
        context: The open run.
        searcher: Proposes configurations.
        options: The budget and the seed.
        note: A text of what the search starts from, for the observer.
        cpu_at_start: CPU times before the search, to warn of other programs.
        enqueued: Configurations to try before the searcher's proposals.
        warns: False leaves out the warnings of other programs and of mistakes in the source, which an earlier
            search gave.
        last_round_follows: True if a last round follows in this context: its references are computed
            meanwhile.

    Raises:
        SetupError: The default configuration fails.
    """
    task, limit = context.task, options.budget.trials
    load = searcher.get_ready if isinstance(searcher, ProposesAhead) else lambda: None
    first = FirstTrial(context, load, warns=warns)
    enqueued = [*(recommended_configs(task) if options.transfer else ()), *enqueued]
    total = None if limit is None else min(limit, len(task.space))
    _prefetch(context, searcher, enqueued, options.seed, total)  # while the default is verified
    context.observer.started(task, total, context.journal, note)
    in_thread("ask sanitizers for their versions", partial(sanitizers, context))  # for the journal
    default = first.run()
    if last_round_follows:  # not before: the reference that the default waits for would take twice as long
        begin_references(context)
    if warns and task.address.backend != INTERPRETER:  # whose times mean nothing
        for warning in cpu_load_warnings(default, task.device.kind, cpu_at_start):
            context.observer.warn(warning)
    if context.fleet is not None:
        calibrate(context, context.fleet)
    for served in task.served_elsewhere:  # it stays the served result unless it is beaten: it is timed anyway
        context.evaluator.evaluate_beside_budget(served)
    with suppress(NoMoreTrials):
        evaluate(context.evaluator, enqueued)
        searcher.search(task.space, context.evaluator, seed=options.seed)
    with suppress(NoMoreTrials):  # raised once none is under way: the searcher may have left some
        while True:
            context.evaluator.collect()
    first.wait()  # the warnings come before the last round


def _prefetch(
    context: TuningContext, searcher: Searcher, enqueued: Sequence[Config], seed: int, total: int | None
) -> None:
    """Begin to compile what `explore` tries first, in its order."""
    space, is_one = context.task.space, context.fleet is None
    first = [space.spec.default] if is_one else calibration_configs(space)
    opening = searcher.opening(space, seed=seed) if isinstance(searcher, ProposesAhead) else []
    proposed = opening[: PREFETCHED * context.pool.size]
    in_order = dict.fromkeys([*first, *context.task.served_elsewhere, *enqueued, *proposed])
    context.evaluator.prefetch(islice(in_order, total))


def choose_engine(options: Options, valid: int) -> tuple[str, str | None]:
    """The engine and strategy from the options, else the default for that many configurations."""
    if options.engine is not None:
        return options.engine, options.strategy
    if options.strategy is not None:
        owners = [name for name in engine_names() if options.strategy in strategy_names(name)]
        if owners:
            raise InputError(f"--strategy {options.strategy}: add --engine {' or --engine '.join(owners)}")
        names = [strategy for name in engine_names() for strategy in strategy_names(name)]
        raise InputError(f"--strategy {options.strategy}: no engine has it{hint(options.strategy, names)}")
    if options.budget.trials is not None and options.budget.trials >= valid:
        return "exhaustive", None
    return ("optuna", "nsgaii_pareto") if options.objective is Objective.PARETO else ("surrogate", None)


def priors_of(task: TuningTask, options: Options) -> tuple[PriorResults, ...]:
    """Results of other devices and problems, if the options allow them and the engine uses any.

    Raises InputError if the engine is to adopt some and there are none.
    """
    engine, _ = choose_engine(options, len(task.space))
    adopts = engine == ADOPTION
    if not (adopts or (options.transfer and learns_from_priors(engine))):
        return ()
    priors = gather_priors(task, options)
    if adopts and not priors:
        raise InputError(
            f"{task.spec.kernel}: no results for another device or size, so there is nothing to adopt; "
            "run `autotune search` for a first result"
        )
    return priors


def require_usable(task: TuningTask) -> None:
    """Raise InputError for a default that is invalid here, or a parameter that the source does not see."""
    require_seen(task.space, task.source.text)
    reasons = task.space.why_invalid(task.spec.default)
    if reasons:
        near = ", ".join(f"{name}: {value}" for name, value in task.space.nearest(task.spec.default).items())
        sizes = task.space.problem.sizes
        problem = f" for {size_text(sizes)}" if sizes else ""
        raise InputError(
            f"{located(task.spec.path, 'default')}: default: not valid on {task.device.name}{problem}: "
            f"{'; '.join(reasons)}; write `default: {{{near}}}`, which is valid, or change the constraint"
        )
