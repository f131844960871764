"""Checks that put a winner under stress: many runs, other sizes, other schedules.

A race often gives the right result, because threads happen to run in a good order. So the configuration is
built again with other orders of threads and blocks (kernels/perturb.h), and verified; the unchanged binary is
the one that is timed and served.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from autotune.compilers.kernel_source import perturbed
from autotune.core.checks import LARGER_SIZES, NO_TIME, PASSED, Checks, Outcome, Unchecked, worst
from autotune.core.launch_plan import TRITON
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import Binary, Failure, Status
from autotune.evaluation.deadline import Deadline
from autotune.evaluation.device_process import DeviceState, verify_often
from autotune.evaluation.instance import KernelInstance
from autotune.evaluation.large_run import foretell, run_many
from autotune.evaluation.worker import SETUP_TIMEOUT_S
from autotune.problem.workload import Workload, verification_order
from autotune.tuning.check_outcomes import ConfigChecks, is_finding, outcome_of
from autotune.tuning.context import Builds, BuiltConfig, TuningContext
from autotune.tuning.further_sizes import LARGE, unknown_text
from autotune.tuning.task import TuningTask

MANY_RUNS, TILE_SIZES, OTHER_SCHEDULES = "many runs", "sizes of its tiles", "other schedules"
SCHEDULES = (1, 2)  # seeds: one odd and one even give the two orders of perturb.h
MAX_RUNS, MAX_RUNS_S = 200, 0.5  # for running a configuration again and again
MAX_SIZES_S = 3.0  # for a configuration at sizes of its tiles
MAX_S = 10.0  # of one run with another schedule
MAX_LARGE_S = 20.0  # of a run beyond 2^31 elements, and of what prepares it
_REFERENCES = 5  # runs of the reference before it
_FREE_SHARE = 0.75  # of the device's memory for this run: other programs use some as well


def check_many_runs(context: TuningContext, built: Builds, deadline: Deadline) -> ConfigChecks:
    """The outcome of many runs of each configuration at one of the verified sizes."""
    context.observer.stage(Stage(f"last round: {MANY_RUNS}"))
    by_config: dict[Config, Checks] = {}
    for config, (instance, binary) in built.items():
        if instance.verify_workloads and not deadline.is_over:
            workload = instance.verify_workloads[len(instance.verify_workloads) // 2]
            found = context.run_or_close(verify_often, binary, workload, MAX_RUNS, MAX_RUNS_S)
            by_config[config] = {MANY_RUNS: outcome_of(found)}
    return by_config


def check_tile_sizes(context: TuningContext, built: Builds, deadline: Deadline) -> ConfigChecks:
    """The outcome of each configuration at sizes that its own tiles make interesting.

    Sizes that divide as all of the space do count in any case, others if the default is right there: else the
    kernel may not be made for them, and it is told that default and reference disagree.
    """
    if not built:
        return {}
    context.observer.stage(Stage(f"last round: {TILE_SIZES}"))
    default = context.build([context.task.spec.default])[0].get(context.task.spec.default)
    found = {
        config: _check_one_at_tile_sizes(context, one, default, deadline)
        for config, one in built.items()
        if one.instance.verify_workloads
    }
    if doubts := [doubt for _, own in found.values() for doubt in own]:
        context.observer.warn(
            "default and reference disagree at sizes unlike the space's, which counts against no other: "
            f"{doubts[0]}"
        )
    return {config: {TILE_SIZES: outcome} for config, (outcome, _) in found.items()}


def _check_one_at_tile_sizes(
    context: TuningContext, one: BuiltConfig, default: BuiltConfig | None, deadline: Deadline
) -> tuple[Outcome, list[Failure]]:
    """The outcome of one configuration, and what is wrong of the default."""
    doubts: list[Failure] = []
    own = Deadline(time.perf_counter() + MAX_SIZES_S)
    verified, is_slow = 0, False
    for workload in context.further_sizes.of_tiles(one.instance):
        expected_s = _reference_s(context, workload)
        if own.left_s(math.inf) <= expected_s:
            is_slow = True
            continue
        if deadline.left_s(math.inf) <= expected_s:
            return NO_TIME, doubts
        if context.worker.load(workload) is not None:
            continue  # the reference does not take these sizes
        found = context.verify(one.binary, workload)
        verified += 1
        if not is_finding(found):
            continue
        by_default = _of_default(context, default, workload)
        advice = (
            context.further_sizes.advice(one.instance, workload) if isinstance(by_default, Failure) else ""
        )
        if by_default is PASSED or context.further_sizes.is_declared(one.instance, workload):
            return replace(found, detail=f"at sizes of its tiles: {found.detail}{advice}"), doubts
        if isinstance(by_default, Failure):
            doubts.append(replace(by_default, detail=f"{by_default.detail}{advice}"))
    if is_slow and not verified:
        return Unchecked(f"each of these takes more than {MAX_SIZES_S:g} s with its reference"), doubts
    return PASSED, doubts


def _reference_s(context: TuningContext, workload: Workload) -> float:
    """The time that the reference may take at the sizes of a workload; 0 if it is not known."""
    found = context.worker.run(DeviceState.reference_s, workload, timeout_s=SETUP_TIMEOUT_S)
    return 0.0 if isinstance(found, Failure) else float(found)


def _of_default(context: TuningContext, default: BuiltConfig | None, workload: Workload) -> Outcome:
    own = context.further_sizes.workload_of(default.instance.config, workload) if default else None
    if default is None or own is None:
        return Unchecked("the default is not valid at these sizes")
    found = context.verify(default.binary, own)
    return found if isinstance(found, Failure) else PASSED


def check_other_schedules(context: TuningContext, built: Builds, deadline: Deadline) -> ConfigChecks:
    """The outcome of each configuration with other schedules.

    A build that does not compile, start or end says nothing about the configuration: the changes may be the
    cause.
    """
    instances = with_schedules(context, (one.instance for one in built.values()))
    if not instances:
        return {}
    builds = [(config, seed) for seed in SCHEDULES for config in built]
    compilations = [context.pool.compile(instance) for instance in instances]
    found: dict[Config, Outcome] = {}
    for done, ((config, seed), compilation) in enumerate(zip(builds, compilations, strict=True), 1):
        if deadline.is_over:
            found |= {left: worst((found.get(left, PASSED), NO_TIME)) for left, _ in builds[done - 1 :]}
            break
        context.observer.stage(Stage(f"last round: {OTHER_SCHEDULES}", done, len(builds)))
        if not isinstance(found.get(config), Failure):
            one = _with_schedule(context, built[config].instance, compilation.result(), seed, deadline)
            found[config] = worst((found.get(config, PASSED), one))
    for compilation in compilations:
        compilation.cancel()  # builds that still wait would delay the following checks
    return {config: {OTHER_SCHEDULES: outcome} for config, outcome in found.items()}


def _with_schedule(
    context: TuningContext, instance: KernelInstance, binary: Binary | Failure, seed: int, deadline: Deadline
) -> Outcome:
    if isinstance(binary, Failure):
        return Unchecked("with another schedule, it does not compile")
    verified = instance.verify_workloads or (instance.workload,)
    workloads = (*verified, *context.further_sizes.small(instance).looping)
    for workload in verification_order(workloads, context.task.device.kind):
        if deadline.is_over:
            return NO_TIME
        found = context.verify(binary, workload, min(MAX_S, context.timeout_s))
        if is_finding(found):
            return replace(found, detail=f"with schedule {seed}: {found.detail}")
        if isinstance(found, Failure):
            return Unchecked(f"with another schedule: {found.detail}")
    return PASSED


def with_schedules(context: TuningContext, instances: Iterable[KernelInstance]) -> list[KernelInstance]:
    """All of the configurations with one other schedule after the other; none where no order can show."""
    if not (context.task.is_c and context.worker.compared):
        return []
    unchanged = tuple(instances)
    return [replace(one, source=perturbed(one.source, seed)) for seed in SCHEDULES for one in unchanged]


def check_larger_sizes(context: TuningContext, built: Builds, deadline: Deadline) -> ConfigChecks:
    """The outcome of reading how the kernels count; on a GPU, the first configuration runs as well.

    It does not if reading has found an index that overflows.
    """
    by_config: dict[Config, Checks] = {}
    for config, one in built.items() if has_indices(context.task) else ():
        if deadline.is_over:
            break
        reason = context.further_sizes.unknown_beyond(one.instance)
        is_unknown = reason == unknown_text(min(LARGE))
        found: Checks = {LARGER_SIZES: Unchecked(reason) if reason else PASSED}
        runs = not by_config and context.task.device.kind == "gpu" and (is_unknown or not reason)
        if runs and deadline.left_s(math.inf) > MAX_LARGE_S:
            found = {**found, **run_beyond(context, one, is_unknown=is_unknown)}
        by_config[config] = found
    return by_config


def run_beyond(
    context: TuningContext, one: BuiltConfig, powers: Sequence[int] = LARGE, *, is_unknown: bool
) -> Checks:
    """The outcome of a run at a size that indices of 32 bits do not hold; empty if none makes sense.

    A wrong result is a limit of the kernel, like an index that overflows: no space asks for such a size.
    `is_unknown` if reading does not tell.
    """
    context.observer.stage(Stage("last round: beyond 2^31 elements"))
    free_bytes = _FREE_SHARE * context.task.device.memory_bytes
    for power, workloads in context.further_sizes.large(one.instance, free_bytes, powers):
        if _REFERENCES * _reference_s(context, workloads.few[-1]) > MAX_LARGE_S:
            continue
        foretold = context.worker.run(foretell, one.binary, workloads, timeout_s=MAX_LARGE_S)
        if foretold is None or isinstance(foretold, Failure):
            continue
        name = f"beyond 2^{power} elements"
        found = context.worker.run(run_many, one.binary, workloads, foretold, timeout_s=MAX_LARGE_S)
        if found is None:
            is_left = is_unknown and power < max(LARGE)
            return {name: PASSED, LARGER_SIZES: Unchecked(unknown_text(max(LARGE))) if is_left else PASSED}
        context.worker.close()  # the run may have written anywhere
        if is_finding(found) or found.status is Status.TIMEOUT:
            return {LARGER_SIZES: Unchecked(f"a run {name} fails: {found.detail}")}
    return {}


def has_indices(task: TuningTask) -> bool:
    """True if it can be read how the source counts."""
    return task.is_c or task.spec.dialect == TRITON
