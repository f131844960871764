"""One search from a target to a cached result, and one walk up a kernel's ladder."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from autotune.cache import check_writable, objective_root, read_entry, store, writable_root
from autotune.contrasts import Group, compare, leaders
from autotune.errors import BudgetSpent, ExpressionError, InputError, Overtaken, SetupError
from autotune.finals import MOST_FINALISTS, by_score, finalists, indistinguishable, play
from autotune.holdings import foreign_bests
from autotune.model import Config, Entry, Front
from autotune.pareto import pareto_front
from autotune.priors import gather, summary
from autotune.records import kernel_record, measured
from autotune.rig import (
    ENERGY_PROTOCOL,
    FULL_PROTOCOL,
    PROTOCOL,
    Observer,
    Options,
    Rig,
    default_journal,
    open_rig,
)
from autotune.searchers import default_strategy, learns_from_priors, make_searcher
from autotune.searchers.base import Prior
from autotune.searchers.surrogate import Outlook, outlook
from autotune.targets import Bound
from autotune.trials import Failure, Measurement, Objective, Status, Trial

TUNED = "tuned best"  # the last rung of a ladder
STRUCK = "last round: "  # how the detail of a trial begins that failed there


@dataclass(frozen=True)
class Result:
    """What a search found out; `final` is the winner's measurement in the last round."""

    bound: Bound
    engine: str
    winner: Trial
    final: Measurement
    default: Measurement
    ties: tuple[Config, ...]
    groups: tuple[Group, ...]  # that the space sets against each other, best first
    trials: tuple[Trial, ...]
    resumed: int
    journal: Path
    cache_file: Path
    objective: Objective
    priors: tuple[Prior, ...]  # what the search was told of other devices and problems
    outlook: Outlook
    compares: bool  # the reference says what is right
    front: Front  # where energy counts: configurations that none is faster and thriftier than
    search_seconds: float  # without the last round
    seconds: float

    @property
    def counts(self) -> Counter[Status]:
        """How many trials ended how."""
        return Counter(trial.status for trial in self.trials)

    @property
    def struck(self) -> tuple[Trial, ...]:
        """Trials that failed in a last round."""
        return tuple(trial for trial in self.trials if trial.detail.startswith(STRUCK))

    @property
    def speedup(self) -> float:
        """The default's score over the winner's, both from the last round: how many times as fast."""
        default, best = (measured.score(self.objective) for measured in (self.default, self.final))
        return default / best if default and best else 1.0


def search(
    bound: Bound, options: Options, observer: Observer, priors: tuple[Prior, ...] | None = None
) -> Result:
    """Search, time the best few once more in turns, and store the winner in the cache.

    `priors` None: gathered here, if the options and the engine ask for them. Raises InputError for bad
    options, before anything is written, and SetupError when the default configuration itself fails.
    """
    engine, strategy = choose_engine(options, len(bound.space))
    priors = _priors(bound, options, engine) if priors is None else priors
    searcher = make_searcher(engine, strategy, priors=priors, stop_when_unlikely=options.stop_when_unlikely)
    strategy = strategy or default_strategy(engine)
    root = Path(objective_root(str(writable_root(options.cache)), options.objective.value))
    _require_valid_default(bound)
    check_writable(root, bound.device, bound.spec.kernel)
    protocol = PROTOCOL if options.objective is Objective.TIME else ENERGY_PROTOCOL
    with open_rig(bound, options, observer, protocol) as rig:
        trials = options.budget.trials
        total = None if trials is None else min(trials, len(bound.space))
        observer.started(bound, total, rig.journal, summary(priors))
        _try_default(rig)
        with suppress(BudgetSpent):
            searcher.search(bound.space, rig.evaluator, seed=options.seed)
        label = f"{engine}:{strategy}" if strategy else engine
        searched_s = rig.evaluator.spent_s
        while True:
            served = _admit_cached(rig, root)
            with suppress(Overtaken):
                return _settle(rig, label, options.seed, root, observer, searched_s, priors, served)


def ladder(
    bound: Bound, options: Options, observer: Observer, tuned: Config | None = None
) -> list[tuple[str, Trial]]:
    """Verify and time every landmark in the order of the space file, then the tuned configuration.

    Invalid ones are PRUNED trials. Raises SetupError when the default configuration itself fails.
    """
    landmarks = bound.spec.landmarks
    if not landmarks:
        raise InputError(f"{bound.spec.path}: has no landmarks; a ladder needs some")
    _require_valid_default(bound)
    own = replace(options, journal=options.journal or default_journal(bound, "ladder.jsonl"))
    with open_rig(bound, own, observer, FULL_PROTOCOL) as rig:
        steps = {landmark.name: landmark.config for landmark in landmarks}
        if tuned is not None:
            steps[TUNED] = tuned
        observer.started(bound, len(steps), rig.journal)
        _try_default(rig)
        return list(zip(steps, rig.evaluator(list(steps.values())), strict=True))


def choose_engine(options: Options, valid: int) -> tuple[str, str | None]:
    """The engine and strategy to use when none is named."""
    if options.engine is not None:
        return options.engine, options.strategy
    if options.strategy is not None:
        raise InputError(f"--strategy {options.strategy} needs --engine kernel_tuner or --engine optuna")
    if options.budget.trials is not None and options.budget.trials >= valid:
        return "exhaustive", None
    return ("optuna", "nsgaii_pareto") if options.objective is Objective.PARETO else ("surrogate", None)


def _priors(bound: Bound, options: Options, engine: str) -> tuple[Prior, ...]:
    """What other devices and problems know, if the search is to be told and can make use of it."""
    if not (options.transfer and learns_from_priors(engine)):
        return ()
    return gather(bound, options.cache, options.journal or default_journal(bound))


def _require_valid_default(bound: Bound) -> None:
    reasons = bound.space.why_invalid(bound.spec.default)
    if reasons:
        raise InputError(
            f"{bound.spec.path}: default: not valid on {bound.device.name}: {'; '.join(reasons)}"
        )


def _try_default(rig: Rig) -> None:
    """The default runs first: when it fails the setup is broken, not the configuration."""
    trial = rig.evaluator.admit(rig.bound.spec.default, charged=True)
    if trial.status is not Status.OK:
        raise SetupError(
            f"{rig.bound.spec.source}: the default configuration fails on {rig.bound.device.name}: "
            f"{trial.status.value}: {trial.detail}"
        )


def _admit_cached(rig: Rig, root: Path) -> tuple[Entry, ...]:
    """Let what the cache serves now, if anything, take part, so that a worse one never replaces it."""
    bound, problem = rig.bound, rig.bound.space.problem
    entry = read_entry(str(root), bound.device.slug, bound.spec.kernel, problem.sizes, problem.dtype)
    if entry is not None and entry.config in bound.space:
        rig.evaluator.admit(entry.config, charged=False)
    return () if entry is None else (entry,)


def _settle(
    rig: Rig,
    label: str,
    seed: int,
    root: Path,
    observer: Observer,
    searched_s: float,
    priors: tuple[Prior, ...],
    served: tuple[Entry, ...],
) -> Result:
    earlier = islice(_still_true(rig), MOST_FINALISTS)
    trials = {trial.config: trial for trial in earlier} | rig.evaluator.trials
    measurements = _last_round(rig, trials, observer)
    by_key = {trial.key: trial for trial in trials.values()}
    winner = _best(measurements, rig, trials)
    final = measurements[winner.key]
    ties = tuple(
        by_key[key].config
        for key, measurement in measurements.items()
        if key != winner.key and indistinguishable(final, measurement, rig.objective)
    )
    default = measurements[trials[rig.bound.spec.default].key]
    kept = foreign_bests(root, rig.bound.device, rig.bound.spec.kernel) | {rig.bound.spec.default}
    for_time = rig.objective is Objective.TIME
    others = measured(trials.values(), measurements, winner, kept) if for_time else ()
    front = () if for_time else pareto_front(trials.values())
    found = (winner, final, default, ties, others, front)
    record = kernel_record(rig.bound, *found, label, seed, len(rig.evaluator.trials), rig.protocol)
    return Result(
        bound=rig.bound,
        engine=label,
        winner=winner,
        final=final,
        default=default,
        ties=ties,
        groups=compare(rig.bound.space, trials.values(), measurements, rig.objective),
        trials=tuple(trials[config] for config in rig.evaluator.trials),
        resumed=rig.evaluator.resumed,
        journal=rig.journal.path,
        cache_file=store(root, rig.bound.device, record, seen=served),
        objective=rig.objective,
        priors=priors,
        outlook=_outlook(rig, winner),
        compares=rig.worker.compares,
        front=front,
        search_seconds=searched_s,
        seconds=rig.evaluator.spent_s,
    )


def _outlook(rig: Rig, winner: Trial) -> Outlook:
    """What is left to find; in time nothing beats the memory's bandwidth, where the space states the work."""
    floor_ms = rig.maker.make(winner.config).floor_ms if rig.objective is Objective.TIME else 0.0
    return outlook(rig.bound.space, tuple(rig.evaluator.trials.values()), floor_ms)


def _still_true(rig: Rig) -> Iterator[Trial]:
    """Trials in the journal, whichever search made them, that still hold; fastest first."""
    for trial in by_score(replace(row, objective=rig.objective) for row in rig.journal.trials.values()):
        with suppress(ExpressionError):
            if trial.config in rig.bound.space and rig.maker.make(trial.config).key == trial.key:
                yield trial


def _last_round(rig: Rig, trials: dict[Config, Trial], observer: Observer) -> Mapping[str, Measurement]:
    """Measure the finalists and the default in turns; who fails is struck, and the next move up."""
    default = trials[rig.bound.spec.default]
    while True:
        chosen = finalists(trials.values())
        for trial in (*leaders(rig.bound.space, trials.values()), default):
            if trial not in chosen:
                chosen.append(trial)
        known = rig.journal.finals.get(tuple(sorted(trial.key for trial in chosen)))
        if known is not None and all(found.score(rig.objective) for found in known.values()):
            return known
        observer.last_round(len(chosen))
        outcome = play(chosen, rig.maker, rig.pool, rig.worker, rig.timeout_s, rig.protocol)
        if default.key in outcome.rejected:
            raise SetupError(f"the default fails in the last round: {outcome.rejected[default.key].detail}")
        for trial in chosen:
            if trial.key in outcome.rejected:
                trials[trial.config] = _strike(rig, trial, outcome.rejected[trial.key])
        if outcome.rejected:
            continue
        winner = _best(outcome.measurements, rig, trials)
        failure = _sanitized(rig, winner)
        if failure is None:
            rig.journal.append_finals(outcome.measurements)
            return outcome.measurements
        if winner == default:
            raise SetupError(f"the default fails in the last round: {failure.detail}")
        trials[winner.config] = _strike(rig, winner, failure)


def _best(measurements: Mapping[str, Measurement], rig: Rig, trials: Mapping[Config, Trial]) -> Trial:
    key = min(measurements, key=lambda key: measurements[key].score(rig.objective) or math.inf)
    return next(trial for trial in trials.values() if trial.key == key)


def _sanitized(rig: Rig, trial: Trial) -> Failure | None:
    """What the sanitizer finds in the sizes to verify, where there is a sanitizer and there are sizes."""
    candidate = rig.maker.make(trial.config)
    if rig.sanitizer is None or not candidate.checks:
        return None
    binary = rig.pool.submit(candidate.source, candidate.options).result()
    return binary if isinstance(binary, Failure) else rig.sanitizer.check(binary, candidate.checks)


def _strike(rig: Rig, trial: Trial, failure: Failure) -> Trial:
    """Take a trial out of the race; a wrong result is journaled, a crash may have been the machine's."""
    struck = replace(trial, status=failure.status, detail=f"{STRUCK}{failure.detail}")
    if failure.status in (Status.WRONG_RESULT, Status.OUT_OF_BOUNDS):
        rig.journal.append(struck)
    return struck
