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
from typing import NamedTuple, TypeGuard

from autotune.compilers.kernel_source import perturbed
from autotune.core.launch_plan import TRITON
from autotune.core.records import Config, Sizes
from autotune.core.stages import Stage
from autotune.core.text import count_text, size_text
from autotune.core.trials import WRONG, Binary, Failure, Status, Trial
from autotune.errors import ExpressionError, SetupError
from autotune.evaluation.deadline import Deadline, Killable
from autotune.evaluation.device_process import DeviceState, verify_often, verify_once
from autotune.evaluation.host_sanitizer import (
    HOST_TOOLS,
    HostSanitizer,
    Unchecked,
    find_host_sanitizer,
)
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.sanitizer import TOOLS
from autotune.evaluation.worker import SETUP_TIMEOUT_S, DeviceWorker
from autotune.problem.covering import Domain, at_tiles, covering
from autotune.problem.data_sets import DATA_SETS, at_sizes, other_data, with_margin
from autotune.problem.problem_instance import ProblemInstance, in_order
from autotune.problem.shapes import SHAPES
from autotune.tuning.context import TuningContext

MANY_RUNS, OTHER_SIZES = "many runs", "other sizes"
OTHER_SCHEDULES, OTHER_DATA = "other schedules", "other data"
MAX_SIZES, MAX_SIZES_S = 6, 3.0  # sizes that the tiles of a configuration make interesting, and their time
SCHEDULES = (1, 2)  # seeds: one odd and one even give the two orders of perturb.h
MAX_RUNS, MAX_RUNS_S = 200, 0.5  # for running a configuration again and again
MAX_JUDGED_S = 1.0  # for the reference and the default on a set of data; slower sizes get no further shapes
MAX_S = 10.0  # of one run with another schedule
_DIALECTS = ("cuda", "opencl")
FINDINGS = (*WRONG, Status.CRASHED)
_OnHost = Failure | Unchecked | None


@dataclass(frozen=True)
class SkippedChecks:
    """Checks that a configuration did not get, although it passed all others."""

    on_cpu: str = ""  # why it could not be checked on the CPU
    late: tuple[str, ...] = ()  # checks that no time was left for
    broken: tuple[str, ...] = ()  # tools that do not work here

    def __str__(self) -> str:
        on_cpu = f"not checked on the CPU: {self.on_cpu}" if self.on_cpu else ""
        broken = f"does not work here: {', '.join(self.broken)}" if self.broken else ""
        return "; ".join(filter(None, (on_cpu, late_text(self.late), broken)))


class Built(NamedTuple):
    """A configuration that is to be stored, and its binary."""

    instance: KernelInstance
    binary: Binary


_Check = Callable[[TuningContext, Mapping[Config, Built], Deadline], Mapping[Config, Failure | Unchecked]]


@dataclass
class StoredChecks:
    """Checks each configuration once, and remembers which checks those that passed did not get."""

    passed: dict[Config, SkippedChecks] = field(default_factory=dict)
    _on_host: dict[Config, Future[_OnHost]] = field(default_factory=dict)  # that were begun early
    _early: Killable = field(default_factory=Killable)  # their processes

    @contextmanager
    def begun(self, context: TuningContext, configs: Iterable[Config], deadline_s: float) -> Iterator[None]:
        """Meanwhile, run configurations that may be stored on the CPU under sanitizers, if it is not timed.

        Args:
            context: The open run.
            configs: Configurations; those that have passed are skipped.
            deadline_s: When to end, on the clock of `time.perf_counter`.
        """
        host = None if context.task.device.kind == "cpu" else _host_sanitizer(context)
        deadline = Deadline(deadline_s)
        self._early = deadline.processes
        threads = ThreadPoolExecutor(context.pool.workers, thread_name_prefix="sanitizer")
        try:
            if host is not None:
                self._on_host |= {
                    config: threads.submit(_checked_on, host, context.maker.make(config), deadline)
                    for config in configs
                    if config not in self.passed
                }
            yield
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            deadline.processes.kill()
            self._on_host.clear()

    def recall(self, context: TuningContext, trials: Iterable[Trial]) -> None:
        """Take over what the journal says has passed all checks, with the sanitizers that are here now."""
        tools = sanitizers(context)
        rounds = [
            found for found in context.journal.finals.values() if tools is None or found.sanitizers == tools
        ]
        checked = {
            key: SkippedChecks(found.on_cpu.get(key, ""), broken=found.broken)
            for found in rounds
            for key in found.checked
        }
        for trial in trials:
            if trial.key in checked:
                self.passed.setdefault(trial.config, checked[trial.key])

    def check(
        self, context: TuningContext, configs: Iterable[Config], deadline_s: float = math.inf
    ) -> dict[Config, Failure]:
        """Run configurations on other data, many times, with other schedules, and meanwhile under sanitizers.

        Sanitizers may take all the time that is left, because they run in processes of their own; the other
        checks divide it equally. A check that has begun is finished.

        Args:
            context: The open run.
            configs: Configurations to check; those that have passed are skipped.
            deadline_s: When to end, on the clock of `time.perf_counter`.

        Returns:
            Why some failed.
        """
        new = [config for config in configs if config not in self.passed]
        built, failures = _build(context, new)
        passed = dict.fromkeys(built, SkippedChecks())
        missed: dict[str, None] = {}
        of_sanitizers = Deadline(deadline_s, missed)

        def take(found: Mapping[Config, Failure | Unchecked]) -> None:
            for config, one in found.items():
                if config not in passed:  # it has failed another check meanwhile
                    continue
                if isinstance(one, Failure):
                    failures[config] = one
                    del passed[config]
                else:
                    passed[config] = SkippedChecks(one.reason)

        checks: list[_Check] = [often, at_other_sizes, with_other_schedules, on_other_data]
        with ThreadPoolExecutor(1) as thread:
            by_sanitizers = thread.submit(under_sanitizers, context, built, of_sanitizers, self._on_host)
            try:
                for number, check in enumerate(checks):
                    now_s = time.perf_counter()
                    deadline = Deadline(now_s + (deadline_s - now_s) / (len(checks) - number), missed)
                    take(check(context, {one: built[one] for one in passed}, deadline))
                context.observer.stage(Stage("last round: under sanitizers"))
                take(by_sanitizers.result())
            finally:  # after an interrupt, a sanitizer would go on for a minute
                of_sanitizers.processes.kill()
                self._early.kill()
        late, broken = tuple(missed), tuple(of_sanitizers.broken)
        passed = {config: replace(one, late=late, broken=broken) for config, one in passed.items()}
        for one, count in Counter(filter(None, map(str, passed.values()))).items():
            context.observer.warn(f"{one} ({count_text(count, 'configuration')})")
        self.passed.update(passed)
        return failures

    def forget_late(self) -> None:
        """Forget configurations with late checks: they are checked again."""
        for config in [config for config, skipped in self.passed.items() if skipped.late]:
            del self.passed[config]


def _build(
    context: TuningContext, configs: Iterable[Config]
) -> tuple[dict[Config, Built], dict[Config, Failure]]:
    """Compile configurations; one that compiled before and cannot any more is not stored unchecked."""
    instances = {config: context.maker.make(config) for config in configs}
    compilations = {config: context.pool.compile(instance) for config, instance in instances.items()}
    built: dict[Config, Built] = {}
    failures: dict[Config, Failure] = {}
    for config, compilation in compilations.items():
        binary = compilation.result()
        if isinstance(binary, Failure):
            failures[config] = binary
        else:
            built[config] = Built(instances[config], binary)
    return built, failures


def often(context: TuningContext, built: Mapping[Config, Built], deadline: Deadline) -> dict[Config, Failure]:
    """The first failure of each configuration in many runs at one of the verified sizes."""
    context.observer.stage(Stage(f"last round: {MANY_RUNS}"))
    failures: dict[Config, Failure] = {}
    for config, (instance, binary) in built.items():
        if not instance.verify_problems or not deadline.allows(MANY_RUNS):
            continue
        problem = instance.verify_problems[len(instance.verify_problems) // 2]
        found = context.check(problem, verify_often, binary, MAX_RUNS, MAX_RUNS_S)
        if _is_finding(found):
            failures[config] = found
        elif isinstance(found, Failure):  # it did not end, or the machine failed: it has not passed
            deadline.note_late(MANY_RUNS)
    return failures


def at_other_sizes(
    context: TuningContext, built: Mapping[Config, Built], deadline: Deadline
) -> dict[Config, Failure]:
    """The first failure of each configuration at sizes that its own tiles make interesting.

    Sizes that divide as all of the space do count in any case, others if the default is right there: else the
    kernel may not be made for them, and the default is doubted.
    """
    context.observer.stage(Stage(f"last round: {OTHER_SIZES}"))
    task, maker = context.task, context.maker
    planner = InstanceMaker(task.space, task.source, task.dialect, {})  # makes no inputs
    default = _build(context, [task.spec.default])[0].get(task.spec.default)
    failures: dict[Config, Failure] = {}
    doubts: list[Failure] = []
    for config, (instance, binary) in built.items():
        checks, timed, end_s = instance.verify_problems, instance.problem, time.perf_counter() + MAX_SIZES_S
        domain = Domain([one.definition.sizes for one in (*checks, timed)])
        count = MAX_SIZES if checks and not timed.trusted else 0
        for planned in at_tiles(checks, timed, config, partial(_check_at, planner, config), count):
            if config in failures or time.perf_counter() > end_s or not deadline.allows(OTHER_SIZES):
                break
            sizes, place = planned.definition.sizes, planned.definition.seed - task.space.problem.seed
            problem = _check_at(maker, config, sizes, place)
            if problem is None or context.worker.place(problem) is not None:
                continue  # the reference does not take these sizes
            found = context.verify(binary, problem)
            if not _is_finding(found):
                continue
            if not domain.is_declared(sizes):
                own = _check_at(maker, default.instance.config, sizes, place) if default else None
                judged = context.verify(default.binary, own) if default and own else False
                if isinstance(judged, Failure):
                    doubts.append(judged)
                if judged is False or isinstance(judged, Failure):
                    continue
            failures[config] = replace(found, detail=f"at sizes of its tiles: {found.detail}")
    if doubts:
        context.observer.warn(
            f"the default is doubtful at sizes unlike the space's, which counts against no other: {doubts[0]}"
        )
    return failures


def _check_at(maker: InstanceMaker, config: Config, sizes: Sizes, place: int) -> ProblemInstance | None:
    try:
        return maker.check_at(config, sizes, place)
    except (ExpressionError, SetupError):
        return None


def with_other_schedules(
    context: TuningContext, built: Mapping[Config, Built], deadline: Deadline
) -> dict[Config, Failure]:
    """The first failure of each configuration with another schedule.

    A build that does not compile, start or end says nothing about the configuration: the changes may be the
    cause.
    """
    if not _shows_schedules(context):
        return {}
    builds = [(config, seed) for seed in SCHEDULES for config in built]
    perturbed_ones = [_perturbed(built[config].instance, seed) for config, seed in builds]
    compilations = [context.pool.compile(instance) for instance in perturbed_ones]
    failures: dict[Config, Failure] = {}
    for done, ((config, seed), compilation) in enumerate(zip(builds, compilations, strict=True), 1):
        context.observer.stage(Stage(f"last round: {OTHER_SCHEDULES}", done, len(builds)))
        if not deadline.allows(OTHER_SCHEDULES):
            break
        binary = compilation.result()
        if config in failures or isinstance(binary, Failure):
            continue
        for problem in in_order(_problems(built[config].instance), context.task.device.kind):
            if not deadline.allows(OTHER_SCHEDULES):
                break
            found = context.verify(binary, problem, min(MAX_S, context.timeout_s))
            if _is_finding(found):
                failures[config] = replace(found, detail=f"with schedule {seed}: {found.detail}")
            if isinstance(found, Failure):
                break
    for compilation in compilations:
        compilation.cancel()  # builds that still wait would delay the following checks
    return failures


def _perturbed(instance: KernelInstance, seed: int) -> KernelInstance:
    return replace(instance, source=perturbed(instance.source, seed))


def _is_c(context: TuningContext) -> bool:
    """True if the source is C, whose threads can be reordered; Triton's compiler makes its own order."""
    return context.task.dialect in _DIALECTS and context.task.spec.dialect != TRITON


def _shows_schedules(context: TuningContext) -> bool:
    """True if another order of threads can show: the source is C, and outputs are compared."""
    return _is_c(context) and bool(context.worker.compared)


def on_other_data(
    context: TuningContext, built: Mapping[Config, Built], deadline: Deadline
) -> dict[Config, Failure]:
    """The first failure of each configuration on another data set.

    A data set is left out if rounding alone could exceed the tolerances, or if the default fails on it. Where
    the reference takes that set, this is told as a doubt about the default. Special values are always used,
    because the space asks for them.
    """
    special, sets = context.task.spec.special, _data_sets(context)
    if not sets or not built:
        return {}
    default = context.task.spec.default
    judged = {**_build(context, [default])[0], **built}
    failures: dict[Config, Failure] = {}
    slow: set[str] = set()  # sizes whose reference would take the time of the other checks
    for name in sets:
        context.observer.stage(Stage(f"last round: {_data(name)}"))
        unfit: set[str] = set()
        for problem, config in _by_size(built if name in special else judged, name):
            sizes = size_text(problem.definition.sizes)
            if sizes in unfit or config in failures:
                continue
            if not deadline.allows(OTHER_DATA):
                break
            if config == default and name not in special:
                began_s = time.perf_counter()
                is_slow = name in SHAPES and sizes in slow
                if is_slow or not _is_judged(context, judged[config].binary, problem, name):
                    unfit.add(sizes)
                if time.perf_counter() - began_s > MAX_JUDGED_S:
                    slow.add(sizes)
                continue
            found = context.verify(judged[config].binary, problem)
            if _is_finding(found):
                failures[config] = replace(found, detail=f"with data {name}: {found.detail}")
            elif isinstance(found, Failure):
                deadline.note_late(OTHER_DATA)
    return failures


def _is_judged(context: TuningContext, default: Binary, problem: ProblemInstance, name: str) -> bool:
    """True if a data set may be counted against configurations, because the default is right on it."""
    if not is_fit(context.worker, problem):
        return False
    found = context.run_on(with_margin(problem), verify_once, default)
    if not isinstance(found, Failure):
        return True
    found = context.verify(default, problem)
    if name in SHAPES and _is_finding(found) and found.status is not Status.CRASHED:
        context.observer.warn(
            f"the default is doubtful: with {_data(name)}, which counts against no other: {found}"
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


def _data(name: str) -> str:
    return f"data {name}"


def _host_sanitizer(context: TuningContext) -> HostSanitizer | None:
    is_asked = _is_c(context) and not context.skips_sanitizer
    return find_host_sanitizer() if is_asked else None


def sanitizers(context: TuningContext) -> str | None:
    """The sanitizers of a search with their versions, for its journal; None if it leaves them out."""
    if context.skips_sanitizer:
        return None
    tools = (_host_sanitizer(context), context.sanitizer)
    return ", ".join(tool.version for tool in tools if tool is not None)


def under_sanitizers(
    context: TuningContext,
    built: Mapping[Config, Built],
    deadline: Deadline,
    begun: Mapping[Config, Future[_OnHost]] = MappingProxyType({}),
) -> dict[Config, Failure | Unchecked]:
    """Findings of the sanitizers, which run on the CPU and on the device at the same time."""
    instances = {config: one.instance for config, one in built.items()}
    with ThreadPoolExecutor(1) as thread:
        found_on_host = thread.submit(on_host, context, instances, deadline, begun)
        found = sanitized(context, built, deadline)
        return found_on_host.result() | found


def on_host(
    context: TuningContext,
    instances: Mapping[Config, KernelInstance],
    deadline: Deadline,
    begun: Mapping[Config, Future[_OnHost]] = MappingProxyType({}),
) -> dict[Config, Failure | Unchecked]:
    """Findings of the host compiler's sanitizers in a kernel that runs on the CPU; some were begun before."""
    host = _host_sanitizer(context)
    if host is None or not instances or not deadline.allows(*HOST_TOOLS):
        return {}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        runs = {
            config: begun.get(config) or threads.submit(_checked_on, host, one, deadline)
            for config, one in instances.items()
        }
        by_config = {config: run.result() for config, run in runs.items()}
    late = {config for config, one in by_config.items() if isinstance(one, Unchecked) and one.is_late}
    if late:
        deadline.note_late(*HOST_TOOLS)
    return {config: one for config, one in by_config.items() if one is not None and config not in late}


def _checked_on(host: HostSanitizer, instance: KernelInstance, deadline: Deadline) -> _OnHost:
    return host.check(instance.source, _small_problems(instance), deadline)


def sanitized(
    context: TuningContext, built: Mapping[Config, Built], deadline: Deadline
) -> dict[Config, Failure]:
    """Findings of the sanitizer; none without one, or at sizes too large for it."""
    checked = {config: one for config, one in built.items() if one.instance.verify_problems}
    if context.sanitizer is None or not checked:
        return {}
    runs = [(one.binary, _small_problems(one.instance)) for one in checked.values()]
    found = context.sanitizer.check(runs, deadline)
    places = list(checked)
    return {places[place]: failure for place, failure in found.items()}


def _is_finding(found: bool | Failure | None) -> TypeGuard[Failure]:
    return isinstance(found, Failure) and found.status in FINDINGS and not found.by_machine


def _problems(instance: KernelInstance) -> tuple[ProblemInstance, ...]:
    return instance.verify_problems or (instance.problem,)


def _small_problems(instance: KernelInstance) -> tuple[ProblemInstance, ...]:
    return covering(_problems(instance), instance.config)


def late_text(late: Iterable[str]) -> str:
    """A text of the checks that no time was left for; empty if there are none."""
    names = ", ".join(late)
    return f"no time was left for {names}" if names else ""


def checks_text(context: TuningContext, skipped: Iterable[SkippedChecks]) -> str:
    """A text of the checks that `StoredChecks` makes on this device, for the provenance of results.

    Args:
        context: The open run.
        skipped: Checks that the stored configurations did not get.
    """
    left = list(skipped)
    late = dict.fromkeys(name for one in left for name in one.late)
    broken = {name for one in left for name in one.broken}
    sets = len(_data_sets(context)) if OTHER_DATA not in late else 0
    has_schedules = _shows_schedules(context) and OTHER_SCHEDULES not in late
    has_sizes = bool(context.maker.make(context.task.spec.default).verify_problems)
    done = (
        f"{sets} sets of data" if sets else "no other data",
        "other sizes" if has_sizes and OTHER_SIZES not in late else "no other sizes",
        f"up to {MAX_RUNS} runs" if has_sizes and MANY_RUNS not in late else "no repeated runs",
        f"{len(SCHEDULES)} schedules" if has_schedules else "no schedules",
    )
    if context.skips_sanitizer:
        tools: Sequence[str] = ["--no-sanitizer"]
    else:
        on_cpu = HOST_TOOLS if _host_sanitizer(context) and not all(one.on_cpu for one in left) else ()
        on_gpu = TOOLS if context.sanitizer and has_sizes else ()
        tools = [tool for tool in (*on_cpu, *on_gpu) if tool not in late and tool not in broken]
        tools = tools or ["no sanitizer"]
    not_on_cpu = dict.fromkeys(str(SkippedChecks(one.on_cpu)) for one in left)
    return ", ".join(filter(None, ["; ".join(done), *tools, *not_on_cpu, late_text(late)]))
