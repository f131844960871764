"""Plants mistakes into a kernel, one at a time, and counts those that verification catches."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.core.launch_plan import TRITON
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import Budget, Failure, Objective, Status
from autotune.errors import InputError, SetupError
from autotune.processes.deadline import Deadline
from autotune.searchers.base import evaluate
from autotune.space.signatures import own_name, space_macros
from autotune.strength.c_mistakes import mistakes_in_c
from autotune.strength.long_run import LongRun
from autotune.strength.mistakes import Mistake, in_turns, merged
from autotune.strength.record import CAUGHT, EQUIVALENT, MISSED, Planted, Strength
from autotune.strength.triton_mistakes import mistakes_in_triton
from autotune.tuning.context import FULL_POLICY, TuningContext, open_run
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.sanitizer_checks import check_on_host
from autotune.tuning.shared_processes import Processes, open_processes
from autotune.tuning.task import TuningTask
from autotune.tuning.winner_checks import WinnerChecks

_CANDIDATES = 12  # configurations that are read besides the default and the landmarks
_CHOSEN = 6
_OF_EACH_KIND = 6
_CONFIGS = 3  # that each mistake is tried in
_STORED = 2  # and that get the checks before storing, which take longer
_TIMEOUT_S = 10.0  # of a trial: a mistake may never end
_SLOWER = 3.0  # or so many times the slowest trial without a mistake, if that is longer
_ONE_S = 60.0  # of the checks of one mistake
_POLICY = replace(FULL_POLICY, samples=1, screen=1, seconds=0.0)  # times do not count
_UNCOMPILED = (Status.COMPILE_ERROR, Status.COMPILE_TIMEOUT)


def measure(task: TuningTask, options: Options, observer: Observer, limit_s: float) -> Strength:
    """Plant mistakes into a right kernel, the kinds in turns; begin no further one after `limit_s`.

    The seed of the options draws the mistakes. The mistake is in the default, too, as it would be in a
    search; the default judges some checks.

    Raises:
        InputError: The source cannot be read, or has no room for mistakes.
        SetupError: The kernel fails as it is.
    """
    deadline = Deadline.after(limit_s)
    observer.stage(Stage("looking for mistakes to plant"))
    chosen = in_turns(_possible_mistakes(task, options.seed), options.seed, _OF_EACH_KIND)
    if not chosen:
        raise InputError(f"{task.spec.source}: found no place for a mistake; name a kernel in C or Triton")
    own = replace(options, fresh=True, budget=Budget(), objective=Objective.TIME, binary_cache=False)
    judged: list[Planted | None] = []
    observer.stage(Stage("checking the kernel without a mistake"))
    with open_processes(task, own, Observer()) as processes:  # each mistake's stages would hide these
        bench = _Bench(own, processes, deadline)
        with bench.opened(task, "right") as right:
            configs = dict.fromkeys(config for mistake in chosen for config in mistake.configs[:_CONFIGS])
            if failures := bench.failures(right, [*configs]):
                config, failure = next(iter(failures.items()))
                raise SetupError(f"without a planted mistake, {config} fails: {failure}; mend it first")
            slowest_s = max((trial.cost_s for trial in right.ledger.trials.values()), default=0.0)
            timeout_s = min(own.timeout_s, max(_TIMEOUT_S, _SLOWER * slowest_s))
            bench = replace(bench, options=replace(own, timeout_s=timeout_s))
            long_run = LongRun(right, timeout_s)
            began_s = time.perf_counter()
            for tried, mistake in enumerate(chosen):
                if deadline.is_over:
                    break
                each_s = (time.perf_counter() - began_s) / tried if tried else limit_s
                left_s = deadline.left_s(each_s * (len(chosen) - tried))
                observer.stage(Stage("planted mistakes", tried, len(chosen), left_s=left_s))
                judged.append(bench.judged(task, mistake, long_run))
    told = tuple(planted for planted in judged if planted and planted.verdict)
    return Strength(told, len(chosen) - judged.count(None) - len(told))


def _possible_mistakes(task: TuningTask, seed: int) -> list[Mistake]:
    """The mistakes that can be planted in the default and in the few configurations whose code differs most.

    Raises InputError for a source that a function of the space makes, or that cannot be read.
    """
    if task.spec.functions.source is not None:
        raise InputError(
            f"{task.spec.path}: a function makes the source: mistakes are planted into a file only"
        )
    space, drawn = task.space, random.Random(seed)
    named = [task.spec.default, *(landmark.config for landmark in task.spec.landmarks)]
    others = drawn.sample(range(len(space)), min(_CANDIDATES, len(space)))
    configs = dict.fromkeys((*named, *map(space.config, others)))
    room = {config: _mistakes_of(task, config) for config in configs if config in space}
    chosen, covered = [task.spec.default], {*room[task.spec.default]}
    while len(chosen) < min(_CHOSEN, len(room)):
        left = [config for config in room if config not in chosen]
        chosen.append(max(left, key=lambda each: (len({*room[each]} - covered), _distance(each, chosen))))
        covered |= {*room[chosen[-1]]}
    return merged((config, room[config]) for config in chosen)


def _mistakes_of(task: TuningTask, config: Config) -> Sequence[Mistake]:
    entries = frozenset(own_name(step.entry) for step in task.space.launches(config))
    if task.spec.dialect == TRITON:
        return mistakes_in_triton(task.source.text, entries)
    macros = space_macros(task.space, config)
    return mistakes_in_c(task.source.text, macros, task.spec.dialect, entries)


def _distance(config: Config, chosen: Sequence[Config]) -> int:
    """How many values differ from the nearest of the chosen ones."""
    return min(sum(config[name] != known[name] for name in config) for known in chosen)


@dataclass(frozen=True)
class _Bench:
    """Runs sources as a search does, in processes that all of them share."""

    options: Options
    processes: Processes
    deadline: Deadline

    @contextmanager
    def opened(self, task: TuningTask, name: str) -> Iterator[TuningContext]:
        options = replace(self.options, journal=Path(self.processes.scratch) / f"{name}.jsonl")
        with open_run(task, options, Observer(), policy=_POLICY, processes=self.processes) as context:
            yield context

    def failures(self, context: TuningContext, configs: Sequence[Config]) -> dict[Config, Failure]:
        """The first configuration that fails a trial, or those that fail a check before storing."""
        for config in configs:
            if self.deadline.is_over:
                return {}
            (trial,) = evaluate(context.evaluator, [config])
            if trial.failure is not None:
                return {config: trial.failure}
        return WinnerChecks().check(context, configs[:_STORED], self._deadline_of_checks())

    def _deadline_of_checks(self) -> Deadline:
        """The deadline of one mistake's checks, which begin now."""
        return Deadline.after(self.deadline.left_s(_ONE_S))

    def _on_host(self, context: TuningContext, config: Config) -> Failure | None:
        """What the CPU's sanitizers find in an access that the device's compiler leaves out."""
        outcomes = check_on_host(context, context.maker.make(config), self._deadline_of_checks())
        return next((outcome for outcome in outcomes.values() if isinstance(outcome, Failure)), None)

    def judged(self, task: TuningTask, mistake: Mistake, long_run: LongRun) -> Planted | None:
        """The mistake with its verdict, which is empty if time is short; None if it does not compile."""
        configs = mistake.configs[:_CONFIGS]
        was, now = mistake.lines(task.source)
        planted = Planted(mistake.kind, mistake.place(task.source), was, now, EQUIVALENT)
        with self.opened(replace(task, source=mistake.planted(task.source)), "planted") as context:
            if long_run.is_same(context.maker, configs):
                failure = self._on_host(context, configs[0])
                return replace(planted, verdict=CAUGHT, detail=str(failure)) if failure else planted
            for failure in self.failures(context, configs).values():
                if failure.status in _UNCOMPILED:
                    return None
                if failure.by_machine or failure.status is Status.MEASUREMENT_ERROR:
                    return replace(planted, verdict="")
                return replace(planted, verdict=CAUGHT, detail=str(failure))
            deadline = self._deadline_of_checks()
            witness = long_run.witness(context.maker, configs, deadline)
        if witness is None:
            return replace(planted, verdict="" if deadline.is_over else EQUIVALENT)
        return replace(planted, verdict=MISSED, detail=str(witness.failure), mend=witness.mend)
