"""Checks before a configuration is stored: other data, many runs, other schedules, and sanitizers.

A race often gives the right result, because threads happen to run in a good order. So the configuration is
built again with other orders of threads and blocks (kernels/perturb.h), and verified; the unchanged binary is
the one that is timed and served. Sanitizers find errors that no result shows.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TypeGuard

from autotune.compilers.kernel_source import perturbed
from autotune.core.checks import (
    LATE,
    OTHER_SIZES,
    PASSED,
    Checks,
    Outcome,
    Unchecked,
    data,
    failure,
    is_late,
    output,
    reasons,
    unchecked_text,
    worst,
)
from autotune.core.launch_plan import TRITON
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.text import count_text, size_text
from autotune.core.trials import WRONG, Binary, Failure, Status, Trial
from autotune.errors import SetupError
from autotune.evaluation.deadline import Deadline, Killable
from autotune.evaluation.device_process import DeviceState, verify_often, verify_once
from autotune.evaluation.host_sanitizer import (
    HOST_TOOLS,
    HostSanitizer,
    find_host_sanitizer,
    is_affordable,
)
from autotune.evaluation.instance import KernelInstance
from autotune.evaluation.sanitizer import TOOLS
from autotune.evaluation.worker import SETUP_TIMEOUT_S, DeviceWorker
from autotune.problem.data_sets import DATA_SETS, at_sizes, other_data, with_margin
from autotune.problem.problem_instance import ProblemInstance, in_order
from autotune.problem.shapes import SHAPES
from autotune.tuning.context import Built, TuningContext

MANY_RUNS, TILE_SIZES, OTHER_SCHEDULES = "many runs", "sizes of its tiles", "other schedules"
LARGER_SIZES = "larger sizes"
LOOPS = "loops that turn again"  # under the sanitizers of the CPU
SCHEDULES = (1, 2)  # seeds: one odd and one even give the two orders of perturb.h
MAX_RUNS, MAX_RUNS_S = 200, 0.5  # for running a configuration again and again
MAX_JUDGED_S = 1.0  # for the reference and the default on a set of data; slower sizes get no further shapes
MAX_S = 10.0  # of one run with another schedule
DOUBTED = 16.0  # times the tolerance: rounding alone is not so far off on data of one kind
_DIALECTS = ("cuda", "opencl")
FINDINGS = (*WRONG, Status.CRASHED)


_Records = Mapping[Config, Checks]
_Check = Callable[[TuningContext, Mapping[Config, Built], Deadline], _Records]


@dataclass
class StoredChecks:
    """Checks each configuration once, and keeps its record."""

    records: dict[Config, Checks] = field(default_factory=dict)
    _on_host: dict[Config, Future[Outcome]] = field(default_factory=dict)  # that were begun early
    _early: Killable = field(default_factory=Killable)  # their processes

    @contextmanager
    def begun(self, context: TuningContext, configs: Iterable[Config], deadline_s: float) -> Iterator[None]:
        """Meanwhile, run configurations that may be stored on the CPU under sanitizers, if it is not timed.

        Args:
            context: The open run.
            configs: Configurations; those that have a record are left out.
            deadline_s: When to end, on the clock of `time.perf_counter`.
        """
        host = None if context.task.device.kind == "cpu" else _host_sanitizer(context)
        deadline = Deadline(deadline_s)
        self._early = deadline.processes
        threads = ThreadPoolExecutor(context.pool.workers, thread_name_prefix="sanitizer")
        try:
            if host is not None:
                self._on_host |= {
                    config: threads.submit(_checked_on, context, host, context.maker.make(config), deadline)
                    for config in configs
                    if config not in self.records
                }
            yield
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            deadline.processes.kill()
            self._on_host.clear()

    def recall(self, context: TuningContext, trials: Iterable[Trial]) -> None:
        """Take over the journal's records that lack nothing, with the sanitizers that are here now."""
        tools, planned = sanitizers(context), plan(context).keys()
        for found in context.journal.last_rounds.values():
            for trial in trials if tools is None or found.sanitizers == tools else ():
                record = found.checks.get(trial.key, {})
                if planned <= record.keys() and not is_late(record):
                    self.records.setdefault(trial.config, record)

    def check(
        self, context: TuningContext, configs: Sequence[Config], deadline_s: float = math.inf
    ) -> dict[Config, Failure]:
        """Run configurations on other data, many times, with other schedules, and meanwhile under sanitizers.

        Sanitizers may take all the time that is left, because they run in processes of their own; the other
        checks divide it equally. A check that has begun is finished.

        Args:
            context: The open run.
            configs: Configurations to check; those that have a record are left out.
            deadline_s: When to end, on the clock of `time.perf_counter`.

        Returns:
            Why some failed.
        """
        known = {config: self.records[config] for config in configs if config in self.records}
        # one that compiled before and cannot any more is not stored unchecked
        built, failures = context.build([config for config in configs if config not in known])
        failures |= {config: failed for config, record in known.items() if (failed := failure(record))}
        planned = plan(context)
        records = {config: dict(planned) for config in built}
        of_sanitizers = Deadline(deadline_s)

        def take(found: _Records) -> None:
            for config, record in found.items():
                records[config] |= record
                if config not in failures and (failed := failure(record)) is not None:
                    failures[config] = failed

        checks: list[_Check] = [
            often,
            at_sizes_of_tiles,
            with_other_schedules,
            on_other_data,
            on_variants,
            at_larger_sizes,
        ]
        instances = {config: one.instance for config, one in built.items()}
        with ThreadPoolExecutor(2) as threads:  # on the CPU and on the device
            by_sanitizers = (
                threads.submit(on_host, context, instances, of_sanitizers, self._on_host),
                threads.submit(sanitized, context, built, of_sanitizers),
            )
            try:
                for number, check in enumerate(checks):
                    now_s = time.perf_counter()
                    deadline = Deadline(now_s + (deadline_s - now_s) / (len(checks) - number))
                    left = {config: one for config, one in built.items() if config not in failures}
                    take(check(context, left, deadline))
                context.observer.stage(Stage("last round: under sanitizers"))
                for found in by_sanitizers:
                    take(found.result())
            finally:  # after an interrupt, a sanitizer would go on for a minute
                of_sanitizers.processes.kill()
                self._early.kill()
        missed = [unchecked_text(reasons(records[config])) for config in built if config not in failures]
        for text, count in Counter(filter(None, missed)).items():
            context.observer.warn(f"{text}: {count_text(count, 'configuration')}")
        self.records |= records
        return failures

    def forget_late(self) -> None:
        """Forget configurations with late checks: they are checked again."""
        self.records = {config: record for config, record in self.records.items() if not is_late(record)}


def plan(context: TuningContext) -> Checks:
    """The checks of each configuration on this device apart from other data.

    A check is late until it is made; one that cannot run here has the reason. Outputs were compared and other
    sizes verified during the search.
    """
    instance, compared = context.maker.make(context.task.spec.default), context.worker.compared
    sizes = PASSED if instance.verify_problems else Unchecked("the space has no verify_sizes")
    planned: dict[str, Outcome] = {output(name): PASSED for name in sorted(compared)}
    for name in instance.uncompared(compared):
        planned[output(name)] = Unchecked("the reference does not return it")
    planned[OTHER_SIZES] = sizes
    planned |= dict.fromkeys((MANY_RUNS, TILE_SIZES), sizes or LATE)
    planned |= dict.fromkeys(map(data, context.task.spec.variants), sizes or LATE)
    if _is_c(context):
        planned[LARGER_SIZES] = LATE
    if _shows_schedules(context):
        planned[OTHER_SCHEDULES] = LATE
    left_out = Unchecked("--no-sanitizer") if context.skips_sanitizer else None
    if _is_c(context):
        host = LATE if find_host_sanitizer() else Unchecked("g++ is not installed")
        planned |= dict.fromkeys((*HOST_TOOLS, LOOPS), left_out or host)
    if context.task.dialect == "cuda" or context.sanitizer is not None:
        device = LATE if context.sanitizer else Unchecked("compute-sanitizer is not installed")
        planned |= dict.fromkeys(TOOLS, left_out or sizes or device)
    return planned


def often(context: TuningContext, built: Mapping[Config, Built], deadline: Deadline) -> _Records:
    """The outcome of many runs of each configuration at one of the verified sizes."""
    context.observer.stage(Stage(f"last round: {MANY_RUNS}"))
    records: dict[Config, Checks] = {}
    for config, (instance, binary) in built.items():
        if instance.verify_problems and not deadline.is_over:
            problem = instance.verify_problems[len(instance.verify_problems) // 2]
            found = context.check(problem, verify_often, binary, MAX_RUNS, MAX_RUNS_S)
            records[config] = {MANY_RUNS: _outcome(found)}
    return records


def at_sizes_of_tiles(context: TuningContext, built: Mapping[Config, Built], deadline: Deadline) -> _Records:
    """The outcome of each configuration at sizes that its own tiles make interesting.

    Sizes that divide as all of the space do count in any case, others if the default is right there: else the
    kernel may not be made for them, and the default is doubted.
    """
    if not built:
        return {}
    context.observer.stage(Stage(f"last round: {TILE_SIZES}"))
    default = context.build([context.task.spec.default])[0].get(context.task.spec.default)
    found = {
        config: _at_sizes_of_tiles(context, one, default, deadline)
        for config, one in built.items()
        if one.instance.verify_problems
    }
    if doubts := [doubt for _, own in found.values() for doubt in own]:
        context.observer.warn(
            f"the default is doubtful at sizes unlike the space's, which counts against no other: {doubts[0]}"
        )
    return {config: {TILE_SIZES: outcome} for config, (outcome, _) in found.items()}


def _at_sizes_of_tiles(
    context: TuningContext, one: Built, default: Built | None, deadline: Deadline
) -> tuple[Outcome, list[Failure]]:
    """The outcome of one configuration, and what is wrong of the default."""
    doubts: list[Failure] = []
    for problem in context.further.of_tiles(one.instance):
        if deadline.is_over:
            return LATE, doubts
        if context.worker.place(problem) is not None:
            continue  # the reference does not take these sizes
        found = context.verify(one.binary, problem)
        if not _is_finding(found):
            continue
        if not context.further.is_declared(one.instance, problem):
            own = context.further.of(default.instance.config, problem) if default else None
            if default is None or own is None:
                continue
            if isinstance(judged := context.verify(default.binary, own), Failure):
                doubts.append(judged)
                continue
        return replace(found, detail=f"at sizes of its tiles: {found.detail}"), doubts
    return PASSED, doubts


def with_other_schedules(
    context: TuningContext, built: Mapping[Config, Built], deadline: Deadline
) -> _Records:
    """The outcome of each configuration with other schedules.

    A build that does not compile, start or end says nothing about the configuration: the changes may be the
    cause.
    """
    if not _shows_schedules(context):
        return {}
    builds = [(config, seed) for seed in SCHEDULES for config in built]
    perturbed_ones = [_perturbed(built[config].instance, seed) for config, seed in builds]
    compilations = [context.pool.compile(instance) for instance in perturbed_ones]
    found: dict[Config, Outcome] = {}
    for done, ((config, seed), compilation) in enumerate(zip(builds, compilations, strict=True), 1):
        if deadline.is_over:
            found |= {left: worst((found.get(left), LATE)) for left, _ in builds[done - 1 :]}
            break
        context.observer.stage(Stage(f"last round: {OTHER_SCHEDULES}", done, len(builds)))
        if not isinstance(found.get(config), Failure):
            one = _with_schedule(context, built[config].instance, compilation.result(), seed, deadline)
            found[config] = worst((found.get(config), one))
    for compilation in compilations:
        compilation.cancel()  # builds that still wait would delay the following checks
    return {config: {OTHER_SCHEDULES: outcome} for config, outcome in found.items()}


def _with_schedule(
    context: TuningContext, instance: KernelInstance, binary: Binary | Failure, seed: int, deadline: Deadline
) -> Outcome:
    """The outcome of a configuration with one other schedule."""
    if isinstance(binary, Failure):
        return Unchecked("with another schedule, it does not compile")
    problems = (*_problems(instance), *context.further.small(instance).further)
    for problem in in_order(problems, context.task.device.kind):
        if deadline.is_over:
            return LATE
        found = context.verify(binary, problem, min(MAX_S, context.timeout_s))
        if _is_finding(found):
            return replace(found, detail=f"with schedule {seed}: {found.detail}")
        if isinstance(found, Failure):
            return Unchecked(f"with another schedule: {found.detail}")
    return PASSED


def _perturbed(instance: KernelInstance, seed: int) -> KernelInstance:
    return replace(instance, source=perturbed(instance.source, seed))


def _is_c(context: TuningContext) -> bool:
    """True if the source is C, whose threads can be reordered; Triton's compiler makes its own order."""
    return context.task.dialect in _DIALECTS and context.task.spec.dialect != TRITON


def _shows_schedules(context: TuningContext) -> bool:
    """True if another order of threads can show: the source is C, and outputs are compared."""
    return _is_c(context) and bool(context.worker.compared)


def on_other_data(context: TuningContext, built: Mapping[Config, Built], deadline: Deadline) -> _Records:
    """The outcome of each configuration on each other data set.

    A data set does not apply if rounding alone could exceed the tolerances, or if the default fails on it.
    Where the reference takes that set, this is told as a doubt about the default. Special values are always
    used, because the space asks for them.
    """
    special, sets = context.task.spec.special, _data_sets(context)
    records: dict[Config, dict[str, Outcome]] = {config: {} for config in built}
    if not sets or not built:
        return records
    default = context.task.spec.default
    judged = {**context.build([default])[0], **built}
    slow: set[str] = set()  # sizes whose reference would take the time of the other checks
    for number, name in enumerate(sets, 1):
        fit: dict[str, bool] = {}  # by size, where the default was judged
        check = data(name)
        for problem, config in _by_size(built if name in special else judged, name):
            sizes = size_text(problem.definition.sizes)
            if not fit.get(sizes, True) or (config in built and failure(records[config])):
                continue
            if config != default and name in SHAPES and sizes not in fit:
                continue  # the reference may not take such data, which only the default tells
            if deadline.is_over:
                for record in records.values():
                    record[check] = worst((record.get(check), LATE))
                break
            context.observer.stage(Stage("last round: other data", number, len(sets)))
            if config == default and name not in special:
                began_s = time.perf_counter()
                is_slow = name in SHAPES and sizes in slow
                fit[sizes] = not is_slow and _is_judged(context, judged[config].binary, problem, name)
                if fit[sizes] and config in built:
                    records[config][check] = worst((records[config].get(check), PASSED))
                if time.perf_counter() - began_s > MAX_JUDGED_S:
                    slow.add(sizes)
                continue
            outcome = _outcome(context.verify(judged[config].binary, problem))
            if isinstance(outcome, Failure):
                outcome = replace(outcome, detail=f"with {check}: {outcome.detail}")
            records[config][check] = worst((records[config].get(check), outcome))
    return records


def at_larger_sizes(context: TuningContext, built: Mapping[Config, Built], deadline: Deadline) -> _Records:
    """The outcome of reading how the kernels count, for sizes that memory has no room for."""
    if not _is_c(context):
        return {}
    records: dict[Config, Checks] = {}
    for config, one in built.items():
        if deadline.is_over:
            break
        reason = context.further.unknown_beyond(one.instance)
        records[config] = {LARGER_SIZES: Unchecked(reason) if reason else PASSED}
    return records


def on_variants(context: TuningContext, built: Mapping[Config, Built], deadline: Deadline) -> _Records:
    """The outcome of each configuration on each variant of the inputs, which the space asks for."""
    records: dict[Config, dict[str, Outcome]] = {config: {} for config in built}
    for name in context.task.spec.variants:
        context.observer.stage(Stage(f"last round: {data(name)}"))
        for config, (instance, binary) in built.items():
            found = map(partial(_on_variant, context, config, binary, name), instance.verify_problems)
            records[config][data(name)] = LATE if deadline.is_over else worst(found)
    return records


def _on_variant(
    context: TuningContext, config: Config, binary: Binary, name: str, problem: ProblemInstance
) -> Outcome:
    try:
        other = context.further.variant(config, problem, name)
    except SetupError as error:
        return Unchecked(str(error))
    outcome = PASSED if other is None else _outcome(context.verify(binary, other))
    if isinstance(outcome, Failure):
        return replace(outcome, detail=f"with {data(name)}: {outcome.detail}")
    return outcome


def _is_judged(context: TuningContext, default: Binary, problem: ProblemInstance, name: str) -> bool:
    """True if a data set may be counted against configurations, because the default is right on it."""
    if not is_fit(context.worker, problem):
        return False
    found = context.run_on(with_margin(problem), verify_once, default)
    if not isinstance(found, Failure):
        return True
    found = context.run_on(with_margin(problem, DOUBTED), verify_once, default)
    if name in SHAPES and _is_finding(found) and found.status is not Status.CRASHED:
        context.observer.warn(
            f"the default is doubtful: with {data(name)}, which counts against no other: {found}"
        )
    return False


def _data_sets(context: TuningContext) -> list[str]:
    """The names of the data sets that the inputs can have."""
    default = context.maker.make(context.task.spec.default)
    names = (*DATA_SETS, *context.task.spec.special)
    return [
        name
        for name in names
        if any(other_data(one, name) for one in at_sizes(name, default.verify_problems, default.problem))
    ]


def _by_size(built: Mapping[Config, Built], name: str) -> Iterator[tuple[ProblemInstance, Config]]:
    """The problems with other data, grouped by size: memory holds one size at a time."""
    problems = [
        (problem, config)
        for config, one in built.items()
        for check in at_sizes(name, one.instance.verify_problems, one.instance.problem)
        if (problem := other_data(check, name))
    ]
    sizes = list(dict.fromkeys(size_text(problem.definition.sizes) for problem, _ in problems))
    yield from sorted(problems, key=lambda pair: sizes.index(size_text(pair[0].definition.sizes)))


def is_fit(worker: DeviceWorker, problem: ProblemInstance) -> bool:
    """True if rounding cannot decide the verdict on a prepared problem with other data."""
    return worker.run(DeviceState.allows_rounding, problem, timeout_s=SETUP_TIMEOUT_S) is True


def _host_sanitizer(context: TuningContext) -> HostSanitizer | None:
    is_asked = _is_c(context) and not context.skips_sanitizer
    return find_host_sanitizer() if is_asked else None


def sanitizers(context: TuningContext) -> str | None:
    """The sanitizers of a search with their versions, for its journal; None if it leaves them out."""
    if context.skips_sanitizer:
        return None
    tools = (_host_sanitizer(context), context.sanitizer)
    return ", ".join(tool.version for tool in tools if tool is not None)


def on_host(
    context: TuningContext,
    instances: Mapping[Config, KernelInstance],
    deadline: Deadline,
    begun: Mapping[Config, Future[Outcome]] = MappingProxyType({}),
) -> _Records:
    """The outcomes of the host compiler's sanitizers on the CPU; some were begun before."""
    host = _host_sanitizer(context)
    if host is None or not instances or deadline.is_over:
        return {}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        runs = {
            config: begun.get(config) or threads.submit(_checked_on, context, host, one, deadline)
            for config, one in instances.items()
        }
        return {
            config: dict.fromkeys(HOST_TOOLS, run.result()) | {LOOPS: _loops(context, instances[config])}
            for config, run in runs.items()
        }


def _checked_on(
    context: TuningContext, host: HostSanitizer, instance: KernelInstance, deadline: Deadline
) -> Outcome:
    small = context.further.small(instance)
    return host.check(instance.source, small.verified, deadline, small.further)


def _loops(context: TuningContext, instance: KernelInstance) -> Outcome:
    """Passed if every loop that turns again at the size to tune for did so under the CPU's sanitizers."""
    small = context.further.small(instance)
    if not (small.is_whole and all(map(is_affordable, small.further))):
        return Unchecked("at no size that the CPU can run does every loop turn again")
    return PASSED


def sanitized(context: TuningContext, built: Mapping[Config, Built], deadline: Deadline) -> _Records:
    """The outcomes under the device's sanitizer; none without one, or at sizes too large for it."""
    checked = {config: one for config, one in built.items() if one.instance.verify_problems}
    if context.sanitizer is None or not checked:
        return {}
    small = {config: context.further.small(one.instance) for config, one in checked.items()}
    runs = [
        (one.binary, (*small[config].verified, *small[config].further)) for config, one in checked.items()
    ]
    return dict(zip(checked, context.sanitizer.check(runs, deadline), strict=True))


def _outcome(found: bool | Failure | None) -> Outcome:
    """A run that did not end, or that the machine broke, has not passed: a later search repeats it."""
    if isinstance(found, Failure) and not _is_finding(found):
        return Unchecked(found.detail, is_late=True)
    return found if isinstance(found, Failure) else PASSED


def _is_finding(found: bool | Failure | None) -> TypeGuard[Failure]:
    return isinstance(found, Failure) and found.status in FINDINGS and not found.by_machine


def _problems(instance: KernelInstance) -> tuple[ProblemInstance, ...]:
    return instance.verify_problems or (instance.problem,)
