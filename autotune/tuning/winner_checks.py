"""Checks winners before they are stored: under stress, on other data and under sanitizers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

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
from autotune.processes.deadline import Deadline, Killable
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
    read_larger_sizes,
)

_Obstacles = Mapping[str, Unchecked | None]
"""The checks that make sense here, each with the reason why it cannot be made, or None."""


@dataclass(frozen=True)
class Check:
    """A check of winners, or several that are made together.

    Its time is predicted to be `base_s` and, for each configuration, the device time of so many `trials`.

    Attributes:
        stage: Its stage, for progress.
        run: Makes it, of the configurations that have not failed.
        obstacles: What keeps it from being made, by the names of its outcomes; None if only `run` can tell.
        is_aside: It needs no device process, and runs while others do.
        early: What can begin without a binary, on likely winners while they are timed. Its outcomes count;
            where it has none, `run` follows.
        processes: Those that it takes. They stand by, without a device, while likely winners are timed.
        steps: If `trials` are for each step: their number until progress tells it.
    """

    stage: str
    run: Callable[[TuningContext, Builds, Deadline], OutcomesByConfig]
    obstacles: Callable[[TuningContext], _Obstacles] | None = None
    is_aside: bool = False
    early: Callable[[TuningContext, KernelInstance, Deadline], Outcomes] | None = None
    processes: Callable[[TuningContext], AbstractContextManager[None]] = lambda _: nullcontext()
    base_s: float = 0.0
    trials: float = 0.0
    steps: int | None = None

    def can_run(self, context: TuningContext) -> bool:
        """True unless the check makes no sense or cannot be made here."""
        return self.obstacles is None or None in self.obstacles(context).values()


@dataclass
class WinnerChecks:
    """Checks each configuration once, and keeps the outcomes."""

    outcomes: dict[Config, Outcomes] = field(default_factory=dict)
    _begun: dict[tuple[Check, Config], Future[Outcomes]] = field(default_factory=dict)
    _begun_processes: Killable = field(default_factory=Killable)  # of these runs

    @contextmanager
    def begun_early(
        self, context: TuningContext, configs: Iterable[Config], deadline: Deadline
    ) -> Iterator[None]:
        """Begin what takes long of the checks of configurations during the block, unless the CPU is timed.

        Those checked before are left out.
        """
        new = [config for config in configs if config not in self.outcomes]
        is_timed = context.task.device.kind == "cpu"
        likely = {} if is_timed else {config: context.maker.make(config) for config in new}
        self._begun_processes = deadline.processes
        threads = ThreadPoolExecutor(context.pool.size, thread_name_prefix="sanitizer")
        with ExitStack() as standing_by:
            try:
                for check in [check for check in CHECKS if likely and check.can_run(context)]:
                    standing_by.enter_context(check.processes(context))
                    if check.early is not None:
                        for config, instance in likely.items():
                            early = threads.submit(check.early, context, instance, deadline)
                            self._begun[check, config] = early
                yield
            finally:
                threads.shutdown(wait=False, cancel_futures=True)
                deadline.processes.kill()
                self._begun.clear()

    def recall(self, context: TuningContext, trials: Iterable[Trial]) -> None:
        """Reuse journaled outcomes in which no expected check is missing, if the sanitizers are the same."""
        tools, expected = sanitizers(context), expected_checks(context).keys()
        for last_round in context.journal.last_rounds.values():
            for trial in trials if tools is None or last_round.sanitizers == tools else ():
                outcomes = last_round.outcomes.get(trial.key, {})
                if expected <= outcomes.keys() and not is_late(outcomes):
                    self.outcomes.setdefault(trial.config, outcomes)

    def check(
        self, context: TuningContext, configs: Sequence[Config], deadline: Deadline
    ) -> dict[Config, Failure]:
        """Make the CHECKS in turns, and meanwhile those that need no device process.

        Returns why some failed; one that was checked before is not run again. The latter may take all the
        time until the deadline; those in turns divide it equally. One that has begun is finished.
        """
        checked_before = [config for config in configs if config in self.outcomes]
        # one that compiled before and cannot any more is not stored unchecked
        builds, failures = context.build([config for config in configs if config not in checked_before])
        _note_failures(failures, {config: self.outcomes[config] for config in checked_before})
        outcomes = self._make_checks(context, builds, failures, deadline)
        _warn_of_missed(context.observer, [outcomes[config] for config in builds if config not in failures])
        self.outcomes |= outcomes
        return failures

    def _make_checks(
        self, context: TuningContext, builds: Builds, failures: dict[Config, Failure], deadline: Deadline
    ) -> dict[Config, Outcomes]:
        """Make the checks of builds, and return the outcomes; failures are added to those known."""
        outcomes = dict.fromkeys(builds, expected_checks(context))
        checks = [check for check in CHECKS if builds and check.can_run(context)]
        turns = [check for check in checks if not check.is_aside]
        whole = replace(deadline, processes=Killable())
        # after an interrupt, a sanitizer would go on for a minute: what the threads wait for is killed first
        with ThreadPoolExecutor(len(CHECKS)) as threads, whole.processes, self._begun_processes:
            aside = {
                check: threads.submit(self._run, check, context, builds, whole)
                for check in checks
                if check.is_aside
            }
            for check in checks:
                left = {config: built for config, built in builds.items() if config not in failures}
                context.observer.stage(Stage(check.stage, configs=len(left)))
                if check in aside:
                    made = aside[check].result()
                else:
                    made = self._run(check, context, left, whole.share(len(turns) - turns.index(check)))
                outcomes |= {config: {**outcomes[config], **added} for config, added in made.items()}
                _note_failures(failures, made)
        return outcomes

    def _run(
        self, check: Check, context: TuningContext, builds: Builds, deadline: Deadline
    ) -> OutcomesByConfig:
        """Make a check of the configurations of which it has told nothing early."""
        begun = {config: self._begun[key] for config in builds if (key := (check, config)) in self._begun}
        told = {config: outcomes for config, early in begun.items() if (outcomes := early.result())}
        others = {config: built for config, built in builds.items() if config not in told}
        return {**told, **(check.run(context, others, deadline) if others else {})}

    def forget_late(self) -> None:
        """Forget configurations with late checks: they are checked again."""
        self.outcomes = {
            config: outcomes for config, outcomes in self.outcomes.items() if not is_late(outcomes)
        }


def _note_failures(failures: dict[Config, Failure], outcomes: OutcomesByConfig) -> None:
    """Add the first failure of each configuration that had none."""
    for config, made in outcomes.items():
        if (failure := first_failure(made)) is not None:
            failures.setdefault(config, failure)


def _warn_of_missed(observer: Observer, outcomes: Iterable[Outcomes]) -> None:
    """Warn of the checks that were not made, once for all configurations that lack the same."""
    for text, count in Counter(filter(None, map(unchecked_text, outcomes))).items():
        kept = "the best is" if count == 1 else f"the best and {count - 1} as fast are"
        observer.warn(f"{kept} checked {text}")


def expected_checks(context: TuningContext) -> Outcomes:
    """The checks that each configuration is to pass on this device, without the checks on other data.

    A check is late until it is made; one that cannot run here has the reason. Outputs were compared and other
    sizes verified during the search.
    """
    compared = context.worker.compared
    expected: dict[str, Outcome] = {output_check(name): PASSED for name in sorted(compared)}
    for name in context.default.uncompared(compared):
        expected[output_check(name)] = Unchecked("the reference does not return it")
    expected[OTHER_SIZES] = _lacks_sizes(context) or PASSED
    for check in CHECKS:
        named = check.obstacles(context) if check.obstacles is not None else {}
        expected |= {name: obstacle or NO_TIME for name, obstacle in named.items()}
    return expected


def _named(names: Iterable[str], *obstacles: Unchecked | None) -> _Obstacles:
    """The first obstacle of checks of these names."""
    return dict.fromkeys(names, next(filter(None, obstacles), None))


def _lacks_sizes(context: TuningContext) -> Unchecked | None:
    return None if context.default.verify_workloads else Unchecked("no verify_sizes are given")


def _lacks_sanitizers(context: TuningContext) -> Unchecked | None:
    return Unchecked("sanitizers are left out") if context.processes.skips_sanitizers else None


def _on_host(context: TuningContext) -> _Obstacles:
    lacks_compiler = None if find_host_sanitizer() else Unchecked("g++ is not installed")
    names = (*HOST_TOOLS, LOOPS) if context.task.is_c else ()
    return _named(names, _lacks_sanitizers(context), lacks_compiler)


def _on_device(context: TuningContext) -> _Obstacles:
    sanitizer = context.processes.sanitizer
    lacks_program = None if sanitizer else Unchecked("compute-sanitizer is not installed")
    names = TOOLS if context.task.dialect == "cuda" or sanitizer else ()
    return _named(names, _lacks_sanitizers(context), _lacks_sizes(context), lacks_program)


def _with_schedules(context: TuningContext) -> _Obstacles:
    return _named((OTHER_SCHEDULES,) if has_schedules(context) else ())


def _at_larger_sizes(context: TuningContext) -> _Obstacles:
    return _named((LARGER_SIZES,) if has_indices(context.task) else ())


def _at_sizes(*names: str) -> Callable[[TuningContext], _Obstacles]:
    return lambda context: _named(names, _lacks_sizes(context))


def _on_variants(context: TuningContext) -> _Obstacles:
    return _named(map(data_check, context.task.spec.variants), _lacks_sizes(context))


def _beyond(context: TuningContext) -> _Obstacles:
    return _at_larger_sizes(context) if context.task.device.kind == "gpu" else {}


CHECKS: tuple[Check, ...] = (  # in this order
    Check(of_last_round(MANY_RUNS), check_many_runs, _at_sizes(MANY_RUNS), base_s=0.1, trials=0.3),
    Check(of_last_round(TILE_SIZES), check_tile_sizes, _at_sizes(TILE_SIZES), base_s=0.2, trials=0.1),
    Check(
        of_last_round(OTHER_SCHEDULES),
        check_other_schedules,
        _with_schedules,
        early=compile_schedules,
        base_s=0.2,
        trials=1.0,
    ),
    Check(OTHER_DATA, check_other_data, base_s=0.2, trials=0.45, steps=11),
    Check(VARIANTS, check_variants, _on_variants, trials=0.25, steps=0),
    Check(of_last_round(LARGER_SIZES), read_larger_sizes, _at_larger_sizes, is_aside=True),
    Check(of_last_round(LARGER_SIZES), check_larger_sizes, _beyond, base_s=0.9),
    Check(SANITIZERS, under_host_sanitizer, _on_host, is_aside=True, early=check_on_host, base_s=1.5),
    Check(
        SANITIZERS,
        under_device_sanitizer,
        _on_device,
        is_aside=True,
        processes=sanitizer_processes,
    ),
)
