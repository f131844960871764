"""Checks of a winner on data that the search has not used."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeGuard

from autotune.checks.deadline import Deadline
from autotune.core.outcomes import NO_TIME, PASSED, Outcome, Unchecked, data_check, first_failure, worst
from autotune.core.records import Config, Sizes
from autotune.core.stages import Stage, of_last_round
from autotune.core.text import size_text
from autotune.core.trials import Binary, Failure, Status
from autotune.errors import SetupError
from autotune.evaluation.device_process import DeviceState, verify_once
from autotune.evaluation.references import MAX_JUDGED_S
from autotune.evaluation.worker import SETUP_TIMEOUT_S, DeviceWorker
from autotune.problem.data_sets import DATA_SETS, MAX_BYTES, OnOtherData, on_other_data, with_margin
from autotune.problem.shapes import SHAPES, WITHIN_FILLS
from autotune.problem.workload import Workload
from autotune.tuning.check_outcomes import OutcomesByConfig, is_finding, outcome_of
from autotune.tuning.context import Builds, TuningContext
from autotune.tuning.task import TuningTask

OTHER_DATA, VARIANTS = of_last_round("other data"), of_last_round("variants")  # stages
DOUBTFUL = Unchecked("rounding may decide")
DOUBTED = 16.0  # times the tolerance: rounding alone is not so far off on data of one kind


def check_other_data(context: TuningContext, builds: Builds, deadline: Deadline) -> OutcomesByConfig:
    """The outcome of each configuration on each other data set.

    At each size, the default judges the data set first: it does not apply if the default fails on it. If the
    reference takes a set on which the default fails, a warning says that the two disagree. Wrong numbers do
    not count where rounding may decide: neither the configuration that gives them nor a later one is judged
    there, and another warning names these sets. Special values are always used, because the space asks for
    them.
    """
    default, special = context.task.spec.default, context.task.spec.special
    by_config: dict[Config, dict[str, Outcome]] = {config: {} for config in builds}
    # the names of the sets that the inputs can have
    sets = list(dict.fromkeys(name for name, _ in _default_problems(context))) if builds else []
    with_default = {**context.build([default])[0], **builds} if sets else {}
    slow: set[str] = set()  # sizes whose reference would take the time of the other checks
    doubts: dict[str, Failure] = {}  # the first wrong result on each set that does not count
    for number, name in enumerate(sets, 1):
        for workloads in _by_size(builds if name in special else with_default, name):
            context.observer.stage(Stage(OTHER_DATA, number, len(sets)))
            context.references.settle(tuple(one.other for one in workloads.values()))
            applies: Outcome | None = PASSED
            if name not in special and (judged := workloads.pop(default, None)) is not None:
                applies = _applies(context, with_default[default].binary, judged, name, slow, deadline)
                if applies is not None and default in by_config:
                    _note(by_config[default], name, applies)
            elif name in SHAPES:
                applies = None  # the reference may not take such data, which only the default tells
            if applies is None:
                continue
            for config, workload in workloads.items():
                if first_failure(by_config[config]) is None:
                    outcome = NO_TIME if deadline.is_over else applies
                    if outcome is PASSED:
                        outcome = _verify(context, builds[config].binary, workload.other, name)
                    if name not in special and _may_be_rounding(outcome, context.worker, workload):
                        doubts.setdefault(name, outcome)
                        outcome = applies = DOUBTFUL  # nor is a later one judged here
                    _note(by_config[config], name, outcome)
    if doubts:
        context.observer.warn(_doubts_text(doubts))
    return by_config


def _doubts_text(doubts: Mapping[str, Failure]) -> str:
    names, first = ", ".join(doubts), next(iter(doubts.values()))
    return (
        f"what differs with data {names} counts against no configuration: rounding may decide there; give "
        f"`verify` a wider tolerance, and it counts; the first is {first.detail}"
    )


def _disagreement_text(task: TuningTask, name: str, answer: Failure) -> str:
    return (
        f"default and reference disagree with {data_check(name)} (inputs {SHAPES[name]}): {answer.detail}; "
        "no configuration is rejected because of these data; to repeat: "
        f"{default_command(task, 'check')}; see docs/measuring.md, When a set counts"
    )


def _may_be_rounding(outcome: Outcome, worker: DeviceWorker, workload: OnOtherData) -> TypeGuard[Failure]:
    """True if a configuration gave numbers that are wrong where rounding may decide."""
    found = outcome.fault.found if isinstance(outcome, Failure) and outcome.fault is not None else ""
    is_number = bool(found) and not ("nan" in found or "inf" in found)
    return is_number and not is_robust_to_rounding(worker, workload)


def _note(outcomes: dict[str, Outcome], name: str, outcome: Outcome) -> None:
    outcomes[data_check(name)] = worst((outcomes.get(data_check(name), PASSED), outcome))


def _verify(context: TuningContext, binary: Binary, workload: Workload, name: str) -> Outcome:
    outcome = outcome_of(context.verify(binary, workload))
    if isinstance(outcome, Failure):
        return replace(outcome, detail=f"with {data_check(name)}: {outcome.detail}")
    return outcome


def _applies(
    context: TuningContext,
    default: Binary,
    workload: OnOtherData,
    name: str,
    slow: set[str],
    deadline: Deadline,
) -> Outcome | None:
    """PASSED if the default is right on a data set, so that it counts; else why it is unknown, or None."""
    size = size_text(workload.usual.problem.sizes)
    if deadline.is_over:
        return NO_TIME
    if name in SHAPES and size in slow:
        return None
    began_s = time.perf_counter()
    outcome = _on_default(context, default, workload, name)
    if time.perf_counter() - began_s > MAX_JUDGED_S:
        slow.add(size)
    return outcome


def _on_default(context: TuningContext, default: Binary, workload: OnOtherData, name: str) -> Outcome | None:
    """PASSED if the default is right on other data; if it clearly is not where that counts, warn of it.

    The reference may be wrong as well, for example where it orders equal values in another way. So no
    configuration fails, but none is checked on data that a call may have.
    """
    answer: Failure | None = context.run(verify_once, default, with_margin(workload.other))
    if answer is None:
        return PASSED
    if name not in SHAPES:
        return None
    answer = context.run(verify_once, default, with_margin(workload.other, DOUBTED))
    if not is_finding(answer) or answer.status is Status.CRASHED:
        return None
    if not is_robust_to_rounding(context.worker, workload):
        return None
    context.observer.warn(_disagreement_text(context.task, name, answer))
    return Unchecked("default and reference disagree") if name in WITHIN_FILLS else None


def default_command(task: TuningTask, verb: str, sizes: Sizes | None = None) -> str:
    """The command that runs or checks the default, at sizes."""
    at = [word for name, size in (sizes or {}).items() for word in ("--size", f"{name}={size}")]
    options = ("-d", str(task.address), "--config", str(task.spec.default), *at)
    return shlex.join(("autotune", verb, str(task.spec.path), *options))


def small_data_workloads(context: TuningContext) -> list[Workload]:
    """The workloads on other data whose results are small enough to be kept ahead, in the order of checks."""
    return [
        one.other
        for _, one in _default_problems(context)
        if sum(array.size_bytes for array in one.other.arrays if array.role in ("out", "inout")) <= MAX_BYTES
    ]


def _default_problems(context: TuningContext) -> Iterator[tuple[str, OnOtherData]]:
    """The workloads of the default on other data, each with the name of the set."""
    default = context.maker.make(context.task.spec.default)
    for name in (*DATA_SETS, *context.task.spec.special):
        for workload in on_other_data(name, default.verify_workloads, default.workload):
            yield name, workload


def _by_size(builds: Builds, name: str) -> Iterable[dict[Config, OnOtherData]]:
    """The workloads with other data, size by size: memory holds one size at a time."""
    by_size: dict[str, dict[Config, OnOtherData]] = {}
    for config, built in builds.items():
        for one in on_other_data(name, built.instance.verify_workloads, built.instance.workload):
            by_size.setdefault(size_text(one.usual.problem.sizes), {})[config] = one
    return by_size.values()


def is_robust_to_rounding(worker: DeviceWorker, workload: OnOtherData) -> bool:
    """True if rounding cannot decide the verdict on other data."""
    judged = workload.other, workload.usual
    return worker.run(DeviceState.allows_rounding, *judged, timeout_s=SETUP_TIMEOUT_S) is True


def check_variants(context: TuningContext, builds: Builds, deadline: Deadline) -> OutcomesByConfig:
    """The outcome of each configuration on each variant of the inputs, which the space asks for."""
    by_config: dict[Config, dict[str, Outcome]] = {config: {} for config in builds}
    for number, name in enumerate(context.task.spec.variants, 1):
        context.observer.stage(Stage(VARIANTS, number, len(context.task.spec.variants)))
        for config, (instance, binary) in builds.items():
            outcomes = map(partial(_on_variant, context, config, binary, name), instance.verify_workloads)
            by_config[config][data_check(name)] = NO_TIME if deadline.is_over else worst(outcomes)
    return by_config


def _on_variant(
    context: TuningContext, config: Config, binary: Binary, name: str, workload: Workload
) -> Outcome:
    try:
        other = context.further_sizes.variant(config, workload, name)
    except SetupError as error:
        return Unchecked(str(error))
    return PASSED if other is None else _verify(context, binary, other, name)
