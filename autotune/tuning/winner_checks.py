"""Checks winners before they are stored: under stress, on other data and under sanitizers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field

from autotune.checks.device_sanitizer import TOOLS
from autotune.checks.host_sanitizer import HOST_TOOLS, find_host_sanitizer
from autotune.core.outcomes import (
    LARGER_SIZES,
    NO_TIME,
    OTHER_SIZES,
    PASSED,
    Outcome,
    Outcomes,
    Unchecked,
    data_check,
    first_failure,
    is_late,
    output_check,
    unchecked_text,
)
from autotune.core.records import Config
from autotune.core.stages import Stage, of_last_round
from autotune.core.trials import Failure, Trial
from autotune.evaluation.instance import KernelInstance
from autotune.processes.deadline import Deadline
from autotune.tuning.check_outcomes import OutcomesByConfig
from autotune.tuning.context import Builds, TuningContext
from autotune.tuning.data_checks import OTHER_DATA, VARIANTS, check_other_data, check_variants
from autotune.tuning.observer import Observer
from autotune.tuning.sanitizer_checks import (
    LOOPS,
    SANITIZERS,
    check_on_host,
    sanitizer_processes,
    sanitizers,
    under_device_sanitizer,
    under_host_sanitizer,
)
from autotune.tuning.stress_checks import (
    MANY_RUNS,
    OTHER_SCHEDULES,
    TILE_SIZES,
    check_larger_sizes,
    check_many_runs,
    check_other_schedules,
    check_tile_sizes,
    compile_schedules,
    has_indices,
    has_schedules,
)


@dataclass(frozen=True)
class Cost:
    """The predicted time of a check: `base_s`, and for each configuration the device time of some trials.

    The trials are for each step of the check.
    """

    base_s: float = 0.0
    trials: float = 0.0
    steps: int | None = None  # their number until progress reports it; None: the check has one step


@dataclass(frozen=True)
class Check:
    """A check of winners, or several that are made together: a row of CHECKS."""

    name: str  # of its stage, and of its outcome
    run: Callable[[TuningContext, Builds, Deadline], OutcomesByConfig]  # of what has not failed
    # the reason why it cannot be made here, which is then its outcome
    obstacle: Callable[[TuningContext], Unchecked | None] = lambda _: None
    applies: Callable[[TuningContext], bool] = lambda _: True  # if not, it has no outcomes
    is_concurrent: bool = False  # it needs no device process, and runs at the same time as the others
    # the names of its outcomes if they differ from `name`; some may be known only after it has run
    names: Callable[[TuningContext], Iterable[str]] | None = None
    # begins it on a likely winner, without a binary; if that gives no outcome, `run` follows
    early: Callable[[TuningContext, KernelInstance, Deadline], Outcomes] | None = None
    # its processes, which wait without a device while likely winners are timed
    processes: Callable[[TuningContext], AbstractContextManager[None]] = lambda _: nullcontext()
    cost: Cost = Cost()  # its predicted time

    @property
    def stage(self) -> str:
        """Its stage, for progress."""
        return of_last_round(self.name)

    def can_run(self, context: TuningContext) -> bool:
        """True unless the check makes no sense or cannot be made here."""
        return self.applies(context) and self.obstacle(context) is None

    def expected(self, context: TuningContext) -> Outcomes:
        """Its outcomes before it is made: the obstacle, else NO_TIME."""
        if not self.applies(context):
            return {}
        names = (self.name,) if self.names is None else self.names(context)
        return dict.fromkeys(names, self.obstacle(context) or NO_TIME)


@dataclass(frozen=True)
class EarlyChecks:
    """The checks that run on likely winners while these are timed."""

    runs: Mapping[tuple[Check, Config], Future[Outcomes]] = field(default_factory=dict)
    deadline: Deadline = field(default_factory=Deadline)  # of the runs, with the processes that they wait for

    def outcomes(self, check: Check, configs: Iterable[Config]) -> dict[Config, Outcomes]:
        """Wait for a check of configurations, and return the outcomes of the configurations that have any."""
        running = {config: run for config in configs if (run := self.runs.get((check, config)))}
        return {config: outcomes for config, run in running.items() if (outcomes := run.result())}


@contextmanager
def early_checks(
    context: TuningContext, configs: Iterable[Config], deadline: Deadline
) -> Iterator[EarlyChecks]:
    """Begin the checks of configurations that can begin early, and end them after the block.

    None begin if the CPU is timed, because they would disturb it.
    """
    is_timed = context.task.device.kind == "cpu"
    instances = {} if is_timed else {config: context.maker.make(config) for config in configs}
    checks = [check for check in CHECKS if instances and check.can_run(context)]
    threads = ThreadPoolExecutor(context.pool.size, thread_name_prefix="sanitizer")
    with ExitStack() as opened:
        for check in checks:
            opened.enter_context(check.processes(context))
        opened.enter_context(deadline)
        opened.callback(threads.shutdown, wait=False, cancel_futures=True)
        runs = {
            (check, config): threads.submit(check.early, context, instance, deadline)
            for check in checks
            if check.early is not None
            for config, instance in instances.items()
        }
        yield EarlyChecks(runs, deadline)


@dataclass
class WinnerChecks:
    """Checks each configuration once, and keeps the outcomes."""

    outcomes: dict[Config, Outcomes] = field(default_factory=dict)

    def recall(self, context: TuningContext, trials: Iterable[Trial]) -> None:
        """Reuse journaled outcomes in which no expected check is missing, if the sanitizers are the same."""
        tools, names = sanitizers(context), outcomes_so_far(context).keys()
        for last_round in context.journal.last_rounds.values():
            if tools is not None and last_round.sanitizers != tools:
                continue
            for trial in trials:
                outcomes = last_round.outcomes.get(trial.key, {})
                if names <= outcomes.keys() and not is_late(outcomes):
                    self.outcomes.setdefault(trial.config, outcomes)

    def check(
        self,
        context: TuningContext,
        configs: Sequence[Config],
        deadline: Deadline,
        early: EarlyChecks | None = None,
    ) -> dict[Config, Failure]:
        """Make the CHECKS of configurations, and return the failures.

        Configurations that were checked before are not checked again. The checks that need a device process
        take turns and divide the time until the deadline equally; meanwhile the others run, and each may take
        all of it. A check that has begun is finished.
        """
        checked_before = [config for config in configs if config in self.outcomes]
        # a configuration that no longer compiles is not stored unchecked
        builds, failures = context.build([config for config in configs if config not in checked_before])
        _note_failures(failures, {config: self.outcomes[config] for config in checked_before})
        outcomes = _make_checks(context, builds, failures, deadline, early or EarlyChecks())
        _warn_of_missed(context.observer, [outcomes[config] for config in builds if config not in failures])
        self.outcomes |= outcomes
        return failures

    def forget_late(self) -> None:
        """Forget configurations with late checks: they are checked again."""
        self.outcomes = {
            config: outcomes for config, outcomes in self.outcomes.items() if not is_late(outcomes)
        }


def _make_checks(
    context: TuningContext,
    builds: Builds,
    failures: dict[Config, Failure],
    deadline: Deadline,
    early: EarlyChecks,
) -> dict[Config, Outcomes]:
    """Make the checks of builds, add their failures to `failures`, and return the outcomes."""
    outcomes = dict.fromkeys(builds, outcomes_so_far(context))
    checks = [check for check in CHECKS if builds and check.can_run(context)]
    turns = [check for check in checks if not check.is_concurrent]
    whole = Deadline(deadline.at_s)  # kills these processes only: more checks may follow until the deadline

    def run(check: Check, configs: Builds, until: Deadline) -> OutcomesByConfig:
        done = early.outcomes(check, configs)
        others = {config: built for config, built in configs.items() if config not in done}
        return {**done, **(check.run(context, others, until) if others else {})}

    # kill what the threads wait for first: after an interrupt, a sanitizer would run on for a minute
    with ThreadPoolExecutor(len(CHECKS)) as threads, whole, early.deadline:
        concurrent = {
            check: threads.submit(run, check, builds, whole) for check in checks if check.is_concurrent
        }
        for check in checks:
            left = {config: built for config, built in builds.items() if config not in failures}
            context.observer.stage(Stage(check.stage, configs=len(left)))
            if check in concurrent:
                made = concurrent[check].result()
            else:
                made = run(check, left, whole.share(len(turns) - turns.index(check)))
            outcomes |= {config: {**outcomes[config], **added} for config, added in made.items()}
            _note_failures(failures, made)
    return outcomes


def _note_failures(failures: dict[Config, Failure], outcomes: OutcomesByConfig) -> None:
    """Add the first failure of each configuration that had none."""
    for config, made in outcomes.items():
        if (failure := first_failure(made)) is not None:
            failures.setdefault(config, failure)


def _warn_of_missed(observer: Observer, outcomes: Sequence[Outcomes]) -> None:
    """Warn of the checks that were not made, once for all configurations that lack the same."""
    for text, count in Counter(filter(None, map(unchecked_text, outcomes))).items():
        which = "" if count == len(outcomes) else f"{count} of "
        best = "the best" if len(outcomes) == 1 else f"the best {len(outcomes)}"
        observer.warn(f"{which}{best}: checked {text}")


def outcomes_so_far(context: TuningContext) -> Outcomes:
    """The outcomes of all checks but those on other data, before CHECKS are made.

    The search has compared the outputs and verified other sizes.
    """
    compared = context.worker.compared
    outcomes: dict[str, Outcome] = {output_check(name): PASSED for name in sorted(compared)}
    for name in context.default.uncompared(compared):
        outcomes[output_check(name)] = Unchecked("the reference does not return it")
    outcomes[OTHER_SIZES] = _lacks_sizes(context) or PASSED
    for check in CHECKS:
        outcomes |= check.expected(context)
    return outcomes


def _lacks_sizes(context: TuningContext) -> Unchecked | None:
    return None if context.default.verify_workloads else Unchecked("no verify_sizes are given")


def _lacks_sanitizers(context: TuningContext) -> Unchecked | None:
    return Unchecked("sanitizers are off") if context.processes.skips_sanitizers else None


def _lacks_host_sanitizer(context: TuningContext) -> Unchecked | None:
    lacks_compiler = None if find_host_sanitizer() else Unchecked("g++ is not installed")
    return _lacks_sanitizers(context) or lacks_compiler


def _lacks_device_sanitizer(context: TuningContext) -> Unchecked | None:
    lacks_program = None if context.processes.sanitizer else Unchecked("compute-sanitizer is not installed")
    return _lacks_sanitizers(context) or _lacks_sizes(context) or lacks_program


CHECKS: tuple[Check, ...] = (  # in this order
    Check(MANY_RUNS, check_many_runs, _lacks_sizes, cost=Cost(0.1, trials=0.3)),
    Check(TILE_SIZES, check_tile_sizes, _lacks_sizes, cost=Cost(0.2, trials=0.1)),
    Check(
        OTHER_SCHEDULES,
        check_other_schedules,
        applies=has_schedules,
        early=compile_schedules,
        cost=Cost(0.2, trials=1.0),
    ),
    Check(OTHER_DATA, check_other_data, names=lambda _: (), cost=Cost(0.2, trials=0.45, steps=11)),
    Check(
        VARIANTS,
        check_variants,
        _lacks_sizes,
        applies=lambda context: bool(context.task.spec.variants),
        names=lambda context: map(data_check, context.task.spec.variants),
        cost=Cost(trials=0.25, steps=0),
    ),
    Check(LARGER_SIZES, check_larger_sizes, applies=has_indices, cost=Cost(0.9)),
    Check(
        SANITIZERS,
        under_host_sanitizer,
        _lacks_host_sanitizer,
        applies=lambda context: context.task.is_c,
        is_concurrent=True,
        names=lambda _: (*HOST_TOOLS, LOOPS),
        early=check_on_host,
        cost=Cost(1.5),
    ),
    Check(
        SANITIZERS,
        under_device_sanitizer,
        _lacks_device_sanitizer,
        applies=lambda context: context.task.address.is_nvidia or bool(context.processes.sanitizer),
        is_concurrent=True,
        names=lambda _: TOOLS,
        processes=sanitizer_processes,
    ),
)
