"""Checks winners before they are stored: under stress, on other data and under sanitizers."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from autotune.checks.deadline import Deadline, Killable
from autotune.checks.device_sanitizer import TOOLS
from autotune.checks.host_sanitizer import HOST_TOOLS, find_host_sanitizer
from autotune.core.checks import (
    LARGER_SIZES,
    NO_TIME,
    OTHER_SIZES,
    PASSED,
    Checks,
    Outcome,
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
from autotune.tuning.check_outcomes import ConfigChecks
from autotune.tuning.context import Builds, TuningContext
from autotune.tuning.data_checks import OTHER_DATA, VARIANTS, check_other_data, check_variants
from autotune.tuning.sanitizer_checks import (
    LOOPS,
    SANITIZERS,
    check_on_host,
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
    has_indices,
    has_schedules,
    read_larger_sizes,
    with_schedules,
)

_Expected = Callable[[TuningContext], Checks]


@dataclass(frozen=True)
class Check:
    """A check of winners, or several that are made together; `run` gets those that have not failed.

    Its time is predicted to be `base_s` and, for each configuration, the device time of so many `trials`.
    """

    stage: str
    run: Callable[[TuningContext, Builds, Deadline], ConfigChecks]
    expected: _Expected | None = None  # until it has run, as `expected_checks`; None if only `run` can tell
    is_aside: bool = False  # it needs no device process, and runs while others do
    early: Callable[[TuningContext, KernelInstance, Deadline], Checks] | None = None  # without a binary
    base_s: float = 0.0
    trials: float = 0.0
    steps: int | None = None  # if `trials` are for each: their number until progress tells it

    def can_run(self, context: TuningContext) -> bool:
        """True unless the check makes no sense or cannot run here."""
        return self.expected is None or NO_TIME in self.expected(context).values()


@dataclass
class WinnerChecks:
    """Checks each configuration once, and keeps the outcomes."""

    outcomes: dict[Config, Checks] = field(default_factory=dict)
    _begun: dict[tuple[Check, Config], Future[Checks]] = field(default_factory=dict)
    _begun_processes: Killable = field(default_factory=Killable)  # of these runs

    @contextmanager
    def begun_early(
        self, context: TuningContext, configs: Iterable[Config], deadline_s: float
    ) -> Iterator[None]:
        """Begin what takes long of the checks of configurations during the block, unless the CPU is timed.

        They run under the CPU's sanitizers, are compiled with other schedules, and the device's sanitizer
        starts. Those checked before are left out. The deadline is on the clock of `time.perf_counter`.
        """
        is_timed = context.task.device.kind == "cpu"
        likely = () if is_timed else [config for config in configs if config not in self.outcomes]
        sanitizer = context.processes.sanitizer if likely and context.task.spec.verify_sizes else None
        deadline = Deadline(deadline_s)
        self._begun_processes = deadline.processes
        threads = ThreadPoolExecutor(context.pool.size, thread_name_prefix="sanitizer")
        try:
            if sanitizer is not None:
                sanitizer.begin()
            for check in CHECKS:
                if check.early is not None:
                    self._begun |= {
                        (check, config): threads.submit(
                            check.early, context, context.maker.make(config), deadline
                        )
                        for config in likely
                    }
            for instance in with_schedules(context, map(context.maker.make, likely)):
                threads.submit(lambda one: context.pool.compile(one).result(), instance)
            yield
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            deadline.processes.kill()
            self._begun.clear()
            if sanitizer is not None:
                sanitizer.end()

    def recall(self, context: TuningContext, trials: Iterable[Trial]) -> None:
        """Reuse journaled outcomes in which no expected check is missing, if the sanitizers are the same."""
        tools, expected = sanitizers(context), expected_checks(context).keys()
        for last_round in context.journal.last_rounds.values():
            for trial in trials if tools is None or last_round.sanitizers == tools else ():
                outcomes = last_round.checks.get(trial.key, {})
                if expected <= outcomes.keys() and not is_late(outcomes):
                    self.outcomes.setdefault(trial.config, outcomes)

    def check(
        self, context: TuningContext, configs: Sequence[Config], deadline_s: float = math.inf
    ) -> dict[Config, Failure]:
        """Make the CHECKS in turns, and meanwhile those that need no device process.

        Returns why some failed; one that was checked before is not run again. The latter may take all the
        time until the deadline, on the clock of `time.perf_counter`; those in turns divide it equally. One
        that has begun is finished.
        """
        earlier = {config: self.outcomes[config] for config in configs if config in self.outcomes}
        # one that compiled before and cannot any more is not stored unchecked
        builds, failures = context.build([config for config in configs if config not in earlier])
        failures |= {
            config: failed for config, outcomes in earlier.items() if (failed := first_failure(outcomes))
        }
        expected = expected_checks(context)
        by_config = {config: dict(expected) for config in builds}
        whole = Deadline(deadline_s)
        checks = [check for check in CHECKS if builds and check.can_run(context)]
        turns = sum(not check.is_aside for check in checks)
        with ThreadPoolExecutor(len(CHECKS)) as threads:
            aside = {
                check: threads.submit(self._run, check, context, builds, whole)
                for check in checks
                if check.is_aside
            }
            try:
                for check in checks:
                    left = {config: built for config, built in builds.items() if config not in failures}
                    context.observer.stage(Stage(check.stage, configs=len(left)))
                    if check in aside:
                        found = aside[check].result()
                    else:
                        now_s = time.perf_counter()
                        deadline = Deadline(now_s + (deadline_s - now_s) / turns)
                        turns -= 1
                        found = check.run(context, left, deadline) if left else {}
                    for config, outcomes in found.items():
                        by_config[config] |= outcomes
                        if config not in failures and (failed := first_failure(outcomes)) is not None:
                            failures[config] = failed
            finally:  # after an interrupt, a sanitizer would go on for a minute
                whole.processes.kill()
                self._begun_processes.kill()
        missed = [unchecked_text(by_config[config]) for config in builds if config not in failures]
        for text, count in Counter(filter(None, missed)).items():
            kept = "the best is" if count == 1 else f"the best and {count - 1} as fast are"
            context.observer.warn(f"{kept} checked {text}")
        self.outcomes |= by_config
        return failures

    def _run(self, check: Check, context: TuningContext, builds: Builds, deadline: Deadline) -> ConfigChecks:
        """Make a check, and wait for what has begun of it."""
        begun = {config: self._begun[key] for config in builds if (key := (check, config)) in self._begun}
        others = {config: built for config, built in builds.items() if config not in begun}
        found = check.run(context, others, deadline) if others else {}
        return {**found, **{config: run.result() for config, run in begun.items()}}

    def forget_late(self) -> None:
        """Forget configurations with late checks: they are checked again."""
        self.outcomes = {
            config: outcomes for config, outcomes in self.outcomes.items() if not is_late(outcomes)
        }


def expected_checks(context: TuningContext) -> Checks:
    """The checks that each configuration is to pass on this device, without the checks on other data.

    A check is late until it is made; one that cannot run here has the reason. Outputs were compared and other
    sizes verified during the search.
    """
    instance, compared = context.maker.make(context.task.spec.default), context.worker.compared
    expected: dict[str, Outcome] = {output_check(name): PASSED for name in sorted(compared)}
    for name in instance.uncompared(compared):
        expected[output_check(name)] = Unchecked("the reference does not return it")
    expected[OTHER_SIZES] = _lacks_sizes(context) or PASSED
    for check in CHECKS:
        expected |= check.expected(context) if check.expected is not None else {}
    return expected


def _late(names: Iterable[str], *obstacles: Unchecked | None) -> Checks:
    """Checks that are late until they are made, or cannot be made for the first obstacle."""
    return dict.fromkeys(names, next(filter(None, obstacles), NO_TIME))


def _lacks_sizes(context: TuningContext) -> Unchecked | None:
    instance = context.maker.make(context.task.spec.default)
    return None if instance.verify_workloads else Unchecked("no verify_sizes are given")


def _lacks_sanitizers(context: TuningContext) -> Unchecked | None:
    return Unchecked("sanitizers are left out") if context.processes.skips_sanitizers else None


def _expected_on_host(context: TuningContext) -> Checks:
    lacks_compiler = None if find_host_sanitizer() else Unchecked("g++ is not installed")
    names = (*HOST_TOOLS, LOOPS) if context.task.is_c else ()
    return _late(names, _lacks_sanitizers(context), lacks_compiler)


def _expected_on_device(context: TuningContext) -> Checks:
    sanitizer = context.processes.sanitizer
    lacks_program = None if sanitizer else Unchecked("compute-sanitizer is not installed")
    names = TOOLS if context.task.dialect == "cuda" or sanitizer else ()
    return _late(names, _lacks_sanitizers(context), _lacks_sizes(context), lacks_program)


def _expected_schedules(context: TuningContext) -> Checks:
    return _late((OTHER_SCHEDULES,) if has_schedules(context) else ())


def _expected_larger(context: TuningContext) -> Checks:
    return _late((LARGER_SIZES,) if has_indices(context.task) else ())


def _at_sizes(*names: str) -> _Expected:
    return lambda context: _late(names, _lacks_sizes(context))


def _expected_variants(context: TuningContext) -> Checks:
    return _late(map(data_check, context.task.spec.variants), _lacks_sizes(context))


def _expected_beyond(context: TuningContext) -> Checks:
    return _expected_larger(context) if context.task.device.kind == "gpu" else {}


CHECKS: tuple[Check, ...] = (  # in this order
    Check(of_last_round(MANY_RUNS), check_many_runs, _at_sizes(MANY_RUNS), base_s=0.1, trials=0.3),
    Check(of_last_round(TILE_SIZES), check_tile_sizes, _at_sizes(TILE_SIZES), base_s=0.2, trials=0.1),
    Check(of_last_round(OTHER_SCHEDULES), check_other_schedules, _expected_schedules, base_s=0.2, trials=1.0),
    Check(OTHER_DATA, check_other_data, base_s=0.2, trials=0.45, steps=11),
    Check(VARIANTS, check_variants, _expected_variants, trials=0.25, steps=0),
    Check(of_last_round(LARGER_SIZES), read_larger_sizes, _expected_larger, is_aside=True),
    Check(of_last_round(LARGER_SIZES), check_larger_sizes, _expected_beyond, base_s=0.9),
    Check(
        SANITIZERS, under_host_sanitizer, _expected_on_host, is_aside=True, early=check_on_host, base_s=1.5
    ),
    Check(SANITIZERS, under_device_sanitizer, _expected_on_device, is_aside=True),
)
