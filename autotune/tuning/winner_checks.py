"""Checks winners before they are stored: under stress, on other data and under sanitizers."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

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
    reasons,
    unchecked_text,
)
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.text import count_text
from autotune.core.trials import Failure, Trial
from autotune.evaluation.deadline import Deadline, Killable
from autotune.evaluation.host_sanitizer import HOST_TOOLS, find_host_sanitizer
from autotune.evaluation.sanitizer import TOOLS
from autotune.tuning import data_checks, sanitizer_checks, stress_checks
from autotune.tuning.check_outcomes import ConfigChecks
from autotune.tuning.context import Builds, TuningContext

_Check = Callable[[TuningContext, Builds, Deadline], ConfigChecks]


@dataclass
class WinnerChecks:
    """Checks each configuration once, and keeps the outcomes."""

    outcomes: dict[Config, Checks] = field(default_factory=dict)
    _begun: dict[Config, Future[Outcome]] = field(default_factory=dict)  # runs under the CPU's sanitizers
    _begun_processes: Killable = field(default_factory=Killable)  # of these runs

    @contextmanager
    def sanitizing(
        self, context: TuningContext, configs: Iterable[Config], deadline_s: float
    ) -> Iterator[None]:
        """Run configurations under the CPU's sanitizers during the block, unless the CPU is timed.

        For `check`, they are also compiled with other schedules, and the device's sanitizer starts. Those
        checked before are left out. The deadline is on the clock of `time.perf_counter`.
        """
        is_timed = context.task.device.kind == "cpu"
        likely = () if is_timed else [config for config in configs if config not in self.outcomes]
        host = sanitizer_checks.host_sanitizer(context) if likely else None
        sanitizer = context.processes.sanitizer if likely and context.task.spec.verify_sizes else None
        deadline = Deadline(deadline_s)
        self._begun_processes = deadline.processes
        threads = ThreadPoolExecutor(context.pool.workers, thread_name_prefix="sanitizer")
        try:
            if sanitizer is not None:
                sanitizer.begin()
            if host is not None:
                self._begun |= {
                    config: threads.submit(
                        sanitizer_checks.check_on_host, context, host, context.maker.make(config), deadline
                    )
                    for config in likely
                }
            for instance in stress_checks.with_schedules(context, map(context.maker.make, likely)):
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
        tools, expected = sanitizer_checks.sanitizers(context), expected_checks(context).keys()
        for last_round in context.journal.last_rounds.values():
            for trial in trials if tools is None or last_round.sanitizers == tools else ():
                outcomes = last_round.checks.get(trial.key, {})
                if expected <= outcomes.keys() and not is_late(outcomes):
                    self.outcomes.setdefault(trial.config, outcomes)

    def check(
        self, context: TuningContext, configs: Sequence[Config], deadline_s: float = math.inf
    ) -> dict[Config, Failure]:
        """Make all checks of the list below in turns, and meanwhile those that need no device process.

        Returns why some failed; one that was checked before is not run again. Sanitizers may take all the
        time until the deadline, on the clock of `time.perf_counter`, because they run in processes of their
        own; those in turns divide it equally. A check that has begun is finished.
        """
        earlier = {config: self.outcomes[config] for config in configs if config in self.outcomes}
        # one that compiled before and cannot any more is not stored unchecked
        builds, failures = context.build([config for config in configs if config not in earlier])
        failures |= {
            config: failed for config, outcomes in earlier.items() if (failed := first_failure(outcomes))
        }
        expected = expected_checks(context)
        by_config = {config: dict(expected) for config in builds}
        sanitizer_deadline = Deadline(deadline_s)

        def add(checked: ConfigChecks) -> None:
            for config, outcomes in checked.items():
                by_config[config] |= outcomes
                if config not in failures and (failed := first_failure(outcomes)) is not None:
                    failures[config] = failed

        checks: list[_Check] = [
            stress_checks.check_many_runs,
            stress_checks.check_tile_sizes,
            stress_checks.check_other_schedules,
            data_checks.check_other_data,
            data_checks.check_variants,
        ]
        instances = {config: built.instance for config, built in builds.items()}
        with ThreadPoolExecutor(3) as threads:
            reading = threads.submit(stress_checks.read_larger_sizes, context, builds, sanitizer_deadline)
            by_sanitizers = (
                threads.submit(
                    sanitizer_checks.under_host_sanitizer, context, instances, sanitizer_deadline, self._begun
                ),
                threads.submit(sanitizer_checks.under_device_sanitizer, context, builds, sanitizer_deadline),
            )
            try:
                for number, check in enumerate(checks):
                    now_s = time.perf_counter()
                    deadline = Deadline(now_s + (deadline_s - now_s) / (len(checks) - number))
                    left = {config: built for config, built in builds.items() if config not in failures}
                    add(check(context, left, deadline))
                add(read := reading.result())
                left = {config: built for config, built in builds.items() if config not in failures}
                add(stress_checks.check_larger_sizes(context, left, read, sanitizer_deadline))
                context.observer.stage(Stage("last round: under sanitizers"))
                for future in by_sanitizers:
                    add(future.result())
            finally:  # after an interrupt, a sanitizer would go on for a minute
                sanitizer_deadline.processes.kill()
                self._begun_processes.kill()
        missed = [unchecked_text(reasons(by_config[config])) for config in builds if config not in failures]
        for text, count in Counter(filter(None, missed)).items():
            context.observer.warn(f"{text}: {count_text(count, 'configuration')}")
        self.outcomes |= by_config
        return failures

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
    sizes = PASSED if instance.verify_workloads else Unchecked("the space has no verify_sizes")
    left_out = Unchecked("sanitizers are left out") if context.processes.skips_sanitizers else PASSED
    expected: dict[str, Outcome] = {output_check(name): PASSED for name in sorted(compared)}
    for name in instance.uncompared(compared):
        expected[output_check(name)] = Unchecked("the reference does not return it")
    expected[OTHER_SIZES] = sizes
    at_sizes = (
        stress_checks.MANY_RUNS,
        stress_checks.TILE_SIZES,
        *map(data_check, context.task.spec.variants),
    )
    expected |= dict.fromkeys(at_sizes, _first_unchecked(sizes, NO_TIME))
    if stress_checks.has_indices(context.task):
        expected[LARGER_SIZES] = NO_TIME
    if context.task.is_c:
        if compared:
            expected[stress_checks.OTHER_SCHEDULES] = NO_TIME
        host = NO_TIME if find_host_sanitizer() else Unchecked("g++ is not installed")
        expected |= dict.fromkeys((*HOST_TOOLS, sanitizer_checks.LOOPS), _first_unchecked(left_out, host))
    if context.task.dialect == "cuda" or context.processes.sanitizer is not None:
        device = NO_TIME if context.processes.sanitizer else Unchecked("compute-sanitizer is not installed")
        expected |= dict.fromkeys(TOOLS, _first_unchecked(left_out, sizes, device))
    return expected


def _first_unchecked(*outcomes: Outcome) -> Outcome:
    return next(outcome for outcome in outcomes if outcome is not PASSED)
