"""Checks that put a winner under stress: many runs, other sizes, other schedules.

A race often gives the right result, because threads happen to run in a good order. So the configuration is
built again with other orders of threads and blocks (kernels/perturb.h), and verified; the unchanged binary is
the one that is timed and served.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from autotune.checks.large_run import foretell, run_many
from autotune.compilers.source_text import perturbed
from autotune.core.launch_plan import TRITON
from autotune.core.outcomes import (
    LARGER_SIZES,
    NO_TIME,
    PASSED,
    Limit,
    Outcome,
    Outcomes,
    Unchecked,
    first_failure,
    worst,
)
from autotune.core.records import Config
from autotune.core.stages import Stage, of_last_round
from autotune.core.trials import Binary, Failure, Status
from autotune.evaluation.device_process import DeviceState, verify_often
from autotune.evaluation.instance import KernelInstance
from autotune.evaluation.worker import SETUP_TIMEOUT_S
from autotune.problem.large_indices import LARGE, IndexLimit, unknown_beyond
from autotune.problem.workload import Workload, verification_order
from autotune.processes.deadline import Deadline
from autotune.tuning.check_outcomes import OutcomesByConfig, is_finding, outcome_of
from autotune.tuning.context import Builds, BuiltConfig, TuningContext

MANY_RUNS, TILE_SIZES, OTHER_SCHEDULES = "many runs", "sizes of its tiles", "other schedules"
SCHEDULES = (1, 2)  # seeds of schedules: an odd and an even one give the two orders of perturb.h
MAX_RUNS, MAX_RUNS_S = 200, 0.5  # limits of `check_many_runs`, for a configuration
MAX_SIZES_S = 3.0  # limit of `check_tile_sizes`, for a configuration
MAX_S = 10.0  # limit of one run with another schedule
MAX_LARGE_S = 20.0  # limit of a run beyond the space's sizes or 2^31 elements, and of its preparation
_REFERENCES = 5  # how often the reference runs to prepare such a run
_CONSTRAIN = "if no call has such sizes, write their limit into `constraints` of the space"
_FREE_SHARE = 0.75  # such a run may take this share of device memory: other programs use some


def check_many_runs(context: TuningContext, builds: Builds, deadline: Deadline) -> OutcomesByConfig:
    """The outcome of many runs of each configuration at one of the verified sizes."""
    by_config: dict[Config, Outcomes] = {}
    kept = () if deadline.is_over else _reset_by_default(context)
    for config, (instance, binary) in builds.items():
        if instance.verify_workloads and not deadline.is_over:
            answer = _often(context, instance, binary, MAX_RUNS, MAX_RUNS_S, kept)
            by_config[config] = {MANY_RUNS: outcome_of(answer)}
    return by_config


def _reset_by_default(context: TuningContext) -> tuple[str, ...]:
    """Arrays that begin with a constant, that the default uses, and that it leaves ready for another run.

    A ticket is such an array. The reference does not return it: only the default shows whether it is reset.
    """
    instance = context.default
    constant = {
        array.name for array in instance.workload.arrays if array.fill and array.fill[0] == "constant"
    }
    unknown = constant.intersection(instance.uncompared(context.worker.compared))
    if not unknown or not instance.verify_workloads:
        return ()
    kept = tuple(sorted(unknown & context.further_sizes.reached(instance)))
    built = context.build([instance.config])[0].get(instance.config) if kept else None
    is_reset = built is not None and _often(context, instance, built.binary, 2, math.inf, kept) is None
    return kept if is_reset else ()


def _often(
    context: TuningContext,
    instance: KernelInstance,
    binary: Binary,
    count: int,
    limit_s: float,
    kept: tuple[str, ...],
) -> Failure | None:
    workload = instance.verify_workloads[len(instance.verify_workloads) // 2]
    return context.run_or_discard(verify_often, binary, workload, count, limit_s, kept)


def check_tile_sizes(context: TuningContext, builds: Builds, deadline: Deadline) -> OutcomesByConfig:
    """The outcome of each configuration at sizes around its own tiles.

    A failure counts if the sizes are divisible by what divides all sizes of the space. At other sizes, it
    counts if the default is right there; if not, a warning says that default and reference disagree.
    """
    default = context.build([context.default.config])[0].get(context.default.config)
    checked = {
        config: _check_one_at_tile_sizes(context, built, default, deadline)
        for config, built in builds.items()
        if built.instance.verify_workloads
    }
    if doubts := [doubt for _, own_doubts in checked.values() for doubt in own_doubts]:
        context.observer.warn(
            "default and reference disagree at sizes unlike the space's; no configuration is rejected "
            f"because of these sizes: {doubts[0]}"
        )
    return {config: {TILE_SIZES: outcome} for config, (outcome, _) in checked.items()}


def _check_one_at_tile_sizes(
    context: TuningContext, built: BuiltConfig, default: BuiltConfig | None, deadline: Deadline
) -> tuple[Outcome, list[Failure]]:
    """The outcome of one configuration, and the default's errors."""
    doubts: list[Failure] = []
    further = context.further_sizes
    verified = left_out = 0
    for workload, in_time, place in _with_deadlines(
        (MAX_SIZES_S, further.of_tiles(built.instance), "at sizes of its tiles"),
        (MAX_LARGE_S, further.at_changed_condition(built.instance), "beyond the sizes of the space"),
    ):
        expected_s = _reference_s(context, workload)
        if in_time.left_s() <= expected_s:
            left_out += 1
            continue
        if deadline.left_s() <= expected_s:
            return NO_TIME, doubts
        if context.worker.load(workload) is not None:
            continue  # the reference does not take these sizes
        answer = context.verify(built.binary, workload)
        if not is_finding(answer):
            verified += answer is None
            left_out += answer is not None  # it may have timed out
            continue
        verified += 1
        by_default = _of_default(context, default, workload)
        is_wrong_too = isinstance(by_default, Failure)
        advice = further.advice(built.instance, workload) if is_wrong_too else ""
        if by_default is PASSED or further.is_declared(built.instance, workload):
            return replace(answer, detail=f"{place}: {answer.detail}{advice}"), doubts
        if isinstance(by_default, Failure):
            doubts.append(replace(by_default, detail=f"{by_default.detail}{advice}"))
    if left_out:
        return Unchecked(f"{verified} of {verified + left_out} sizes were verified in time"), doubts
    return PASSED, doubts


def _with_deadlines(
    *groups: tuple[float, Iterable[Workload], str],
) -> Iterator[tuple[Workload, Deadline, str]]:
    """Each workload with the deadline of its group, which begins when the group does, and its name."""
    for limit_s, workloads, name in groups:
        deadline = Deadline.after(limit_s)
        yield from ((workload, deadline, name) for workload in workloads)


def _reference_s(context: TuningContext, workload: Workload) -> float:
    """The time that the reference may take at the sizes of a workload; 0 if it is not known."""
    answer = context.worker.run(DeviceState.reference_s, workload, timeout_s=SETUP_TIMEOUT_S)
    return 0.0 if isinstance(answer, Failure) else answer


def _of_default(context: TuningContext, default: BuiltConfig | None, workload: Workload) -> Outcome:
    same = context.further_sizes.workload_of(default.instance.config, workload) if default else None
    if default is None or same is None:
        return Unchecked("the default is not valid at these sizes")
    return context.verify(default.binary, same) or PASSED


def check_other_schedules(context: TuningContext, builds: Builds, deadline: Deadline) -> OutcomesByConfig:
    """The outcome of each configuration with other schedules.

    A build that does not compile, start or end says nothing about the configuration: its changes may be the
    cause.
    """
    instances = with_schedules(context, (built.instance for built in builds.values()))
    if not instances:
        return {}
    scheduled = [(config, seed) for seed in SCHEDULES for config in builds]
    compilations = [context.pool.compile(instance) for instance in instances]
    outcomes: dict[Config, Outcome] = {}
    for done, ((config, seed), compilation) in enumerate(zip(scheduled, compilations, strict=True), 1):
        if deadline.is_over:
            outcomes |= {
                left: worst((outcomes.get(left, PASSED), NO_TIME)) for left, _ in scheduled[done - 1 :]
            }
            break
        context.observer.stage(Stage(of_last_round(OTHER_SCHEDULES), done, len(scheduled)))
        if not isinstance(outcomes.get(config), Failure):
            outcome = _with_schedule(context, builds[config].instance, compilation.result(), seed, deadline)
            outcomes[config] = worst((outcomes.get(config, PASSED), outcome))
    for compilation in compilations:
        compilation.cancel()  # builds that still wait would delay the following checks
    return {config: {OTHER_SCHEDULES: outcome} for config, outcome in outcomes.items()}


def _with_schedule(
    context: TuningContext, instance: KernelInstance, binary: Binary | Failure, seed: int, deadline: Deadline
) -> Outcome:
    if isinstance(binary, Failure):
        return Unchecked("with another schedule, the source does not compile")
    verified = instance.verify_workloads or (instance.workload,)
    workloads = (*verified, *context.further_sizes.small(instance).further)
    for workload in verification_order(workloads, context.task.device.kind):
        if deadline.is_over:
            return NO_TIME
        answer = context.verify(binary, workload, min(MAX_S, context.timeout_s))
        if is_finding(answer):
            return replace(answer, detail=f"with schedule {seed}: {answer.detail}")
        if answer is not None:
            return Unchecked(f"with another schedule: {answer.detail}")
    return PASSED


def has_schedules(context: TuningContext) -> bool:
    """True if another order of threads and blocks can show a mistake."""
    return context.task.is_c and bool(context.worker.compared)


def compile_schedules(context: TuningContext, instance: KernelInstance, _: Deadline) -> Outcomes:
    """Compile a configuration with other schedules, before these are checked; there is no outcome yet."""
    for scheduled in with_schedules(context, [instance]):
        context.pool.compile(scheduled).result()
    return {}


def with_schedules(context: TuningContext, instances: Iterable[KernelInstance]) -> list[KernelInstance]:
    """All configurations with one other schedule, then with the next; none if no order shows a mistake."""
    if not has_schedules(context):
        return []
    unchanged = tuple(instances)
    return [replace(one, source=perturbed(one.source, seed)) for seed in SCHEDULES for one in unchanged]


def check_larger_sizes(context: TuningContext, builds: Builds, deadline: Deadline) -> OutcomesByConfig:
    """The outcome of reading the kernels' index arithmetic at sizes that do not fit into memory.

    On a GPU, the first configuration also runs at a size whose indices exceed 32 bits, unless reading has
    found an index that overflows.
    """
    by_config: dict[Config, Outcomes] = {}
    for config, built in builds.items():
        if not deadline.is_over:
            limit = context.further_sizes.index_limit(built.instance)
            by_config[config] = {LARGER_SIZES: _read_outcome(context, limit)}
    right = (config for config, read in by_config.items() if first_failure(read) is None)
    if context.task.device.kind != "gpu" or (first := next(right, None)) is None:
        return by_config
    limit = context.further_sizes.index_limit(builds[first].instance)
    overflows = limit.is_known and limit.reason
    if not overflows and deadline.left_s() > MAX_LARGE_S:
        by_config[first] = {**by_config[first], **run_beyond(context, builds[first], limit)}
    return by_config


def _read_outcome(context: TuningContext, limit: IndexLimit) -> Outcome:
    """The outcome of reading; an overflow is a failure if the default has none: callers may rely on that."""
    if not limit.reason:
        return PASSED
    if limit.is_known and not context.further_sizes.index_limit(context.default).reason:
        detail = f"at larger sizes, where the default's indices are right: {limit.reason}; {_CONSTRAIN}"
        return Failure(Status.WRONG_RESULT, detail)
    return Limit(limit.reason)


def run_beyond(
    context: TuningContext, built: BuiltConfig, limit: IndexLimit, powers: Sequence[int] = LARGE
) -> Outcomes:
    """The outcome of a run at a size whose indices exceed 32 bits; empty if no such run makes sense.

    A wrong result is a limit of the kernel, like an index that overflows: no space asks for such a size.
    `limit` is the limit that reading found.
    """
    free_bytes = _FREE_SHARE * context.task.device.memory_bytes
    for power, workloads in context.further_sizes.large(built.instance, free_bytes, powers):
        if _REFERENCES * _reference_s(context, workloads.few[-1]) > MAX_LARGE_S:
            continue
        foretold = context.worker.run(foretell, built.binary, workloads, timeout_s=MAX_LARGE_S)
        if foretold is None or isinstance(foretold, Failure):
            continue
        name = f"beyond 2^{power} elements"
        failure = context.worker.run(run_many, built.binary, workloads, foretold, timeout_s=MAX_LARGE_S)
        if failure is None:
            return {name: PASSED, LARGER_SIZES: _left_unknown(limit, power)}
        context.worker.discard_child()  # the run may have written anywhere
        if is_finding(failure) or failure.status is Status.TIMEOUT:
            return {LARGER_SIZES: Limit(f"a run {name} fails: {failure.detail}")}
    return {}


def _left_unknown(limit: IndexLimit, power: int) -> Outcome:
    """The limit that remains after a right run beyond a power of two: a condition may change elsewhere."""
    if limit.changed is not None:
        return Limit(limit.reason)
    if not limit.is_known and power < max(LARGE):
        return Limit(unknown_beyond(max(LARGE)).reason)
    return PASSED


def has_indices(context: TuningContext) -> bool:
    """True if the source's index arithmetic can be read."""
    return context.task.is_c or context.task.spec.dialect == TRITON
