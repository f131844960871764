"""Checks of a winner on data that the search has not used."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeGuard

from autotune.core.outcomes import NO_TIME, PASSED, Outcome, Unchecked, data_check, first_failure, worst
from autotune.core.records import Config, Sizes
from autotune.core.stages import Stage, of_last_round
from autotune.core.text import size_text
from autotune.core.trials import Binary, Failure, Status
from autotune.errors import SetupError
from autotune.evaluation.device_process import DeviceState, verify_once
from autotune.evaluation.references import MAX_JUDGED_S
from autotune.evaluation.worker import SETUP_TIMEOUT_S, DeviceWorker
from autotune.problem.data_sets import (
    DATA_SETS,
    MAX_BYTES,
    OnOtherData,
    on_other_data,
    with_margin,
    with_tolerance,
)
from autotune.problem.shapes import BEYOND_FILLS, SHAPES
from autotune.problem.workload import Workload
from autotune.processes.deadline import Deadline
from autotune.tuning.check_outcomes import OutcomesByConfig, is_finding, outcome_of
from autotune.tuning.context import Builds, TuningContext
from autotune.tuning.task import TuningTask

OTHER_DATA, VARIANTS = "other data", "variants"
DOUBTED = 16.0  # an error above so many tolerances is no rounding, on data of one kind
DISPUTED, DOUBTFUL = Unchecked("default and reference disagree"), Unchecked("rounding may decide")
SLOW = Unchecked("reference and default are slow")


def check_other_data(context: TuningContext, builds: Builds, deadline: Deadline) -> OutcomesByConfig:
    """The outcome of each configuration on each other data set.

    At each size, the default judges the data set first: a set does not apply if the default fails on it. If
    the reference takes such a set, a warning says that the two disagree. Wrong numbers do not count where
    rounding may decide: neither the configuration that gives them nor a later one is judged there, and
    another warning names these sets. Special values always count, because the space asks for them.
    """
    # the names of the sets that the inputs can have
    sets = list(dict.fromkeys(name for name, _ in _default_workloads(context))) if builds else []
    if not sets:
        return {}
    on_sets = _OtherSets(context, builds, deadline)
    for number, name in enumerate(sets, 1):
        for workloads in on_sets.by_size(name):
            context.observer.stage(Stage(of_last_round(OTHER_DATA), number, len(sets)))
            context.references.settle(tuple(workload.other for workload in workloads.values()))
            on_sets.check(name, workloads)
    if on_sets.doubts:
        context.observer.warn(
            f"differences with data {', '.join(on_sets.doubts)} count against no configuration, as rounding "
            "may decide there; to count them, give `verify` a wider tolerance; the first is "
            f"{next(iter(on_sets.doubts.values())).detail}"
        )
    on_sets.note_slow()
    return on_sets.outcomes


class _OtherSets:
    """Checks configurations on other data sets, each at one size, and keeps the outcomes."""

    def __init__(self, context: TuningContext, builds: Builds, deadline: Deadline) -> None:
        """Compile the default as well, which judges the sets."""
        self._context, self._deadline = context, deadline
        self._default, self._special = context.task.spec.default, context.task.spec.special
        self._builds, self._with_default = builds, {**context.build([self._default])[0], **builds}
        self._fastest_s: dict[str, float] = {}  # by size: the time in which a set was judged
        self._judged: set[str] = set()  # sets, at one size or more
        self._slow: set[str] = set()  # sets that were left out at one size or more
        self.outcomes: dict[Config, dict[str, Outcome]] = {config: {} for config in builds}
        self.doubts: dict[str, Failure] = {}  # by data set: the first wrong result that counts against nobody

    def by_size(self, name: str) -> Iterable[dict[Config, OnOtherData]]:
        """The workloads with a data set, size by size: memory holds one size at a time."""
        by_size: dict[str, dict[Config, OnOtherData]] = {}
        builds = self._builds if name in self._special else self._with_default
        for config, (instance, _) in builds.items():
            for workload in on_other_data(name, instance.verify_workloads, instance.workload):
                by_size.setdefault(size_text(workload.usual.problem.sizes), {})[config] = workload
        return by_size.values()

    def check(self, name: str, workloads: dict[Config, OnOtherData]) -> None:
        """Check the configurations that have not failed on a data set at one size."""
        of_default = None if name in self._special else workloads.pop(self._default, None)
        judged = self._judge(name, of_default)
        if judged is None:
            return
        if of_default is not None and self._default in self.outcomes:
            self._note(self._default, name, judged)
        has_doubt = False
        for config, workload in workloads.items():
            if first_failure(self.outcomes[config]) is not None:
                continue
            outcome = NO_TIME if self._deadline.is_over else DOUBTFUL if has_doubt else judged
            if outcome is PASSED:
                outcome = _verify(self._context, self._builds[config].binary, workload.other, name)
            if name not in self._special and self._is_doubtful(outcome, workload):
                self.doubts.setdefault(name, outcome)
                has_doubt, outcome = True, DOUBTFUL
            self._note(config, name, outcome)

    def _is_doubtful(self, outcome: Outcome, workload: OnOtherData) -> TypeGuard[Failure]:
        """True if a configuration gave numbers that are wrong where rounding may decide."""
        number = outcome.fault.found if isinstance(outcome, Failure) and outcome.fault is not None else ""
        is_number = bool(number) and not ("nan" in number or "inf" in number)
        return is_number and not rounding_is_tolerated(self._context.worker, workload)

    def _note(self, config: Config, name: str, outcome: Outcome) -> None:
        outcomes, check = self.outcomes[config], data_check(name)
        outcomes[check] = worst((outcomes.get(check, PASSED), outcome))

    def _judge(self, name: str, of_default: OnOtherData | None) -> Outcome | None:
        """The default's outcome on a data set at one size; None if the set does not apply there.

        After PASSED, which needs no workload of the default, configurations are checked. Any other outcome
        also becomes theirs, without a check.
        """
        if of_default is None:  # the reference may not take a shape, which only the default shows
            return None if name in SHAPES else PASSED
        if self._deadline.is_over:
            return NO_TIME
        size, began_s = size_text(of_default.usual.problem.sizes), time.perf_counter()
        if name in SHAPES and self._fastest_s.get(size, 0.0) > MAX_JUDGED_S:
            self._slow.add(name)
            return None
        judged = self._judge_in_time(name, of_default)
        self._judged.add(name)
        # a busy machine may hold up one set: a size is slow only if every set was
        took_s = time.perf_counter() - began_s
        self._fastest_s[size] = min(took_s, self._fastest_s.get(size, took_s))
        return judged

    def note_slow(self) -> None:
        """Note the reason for the sets that were skipped at all sizes."""
        for name in sorted(self._slow - self._judged):
            for config in self.outcomes:
                self._note(config, name, SLOW)

    def _judge_in_time(self, name: str, workload: OnOtherData) -> Outcome | None:
        """As `_judge`; warn if the default is clearly wrong where rounding cannot be the cause.

        The reference may be wrong as well, for example where it orders equal values in another way. So no
        configuration fails, but none is checked on data that a call may have.
        """
        context, default = self._context, self._with_default[self._default].binary
        answer = context.run(verify_once, default, with_margin(workload.other))
        if answer is None:
            return PASSED
        answer = context.run(verify_once, default, with_tolerance(workload.other, DOUBTED))
        if not is_finding(answer) or answer.status is Status.CRASHED:
            return None
        if not rounding_is_tolerated(context.worker, workload):
            return None
        inputs = f" (inputs: {SHAPES[name]})" if name in SHAPES else ""
        context.observer.warn(
            f"default and reference disagree with {data_check(name)}{inputs}: {answer.detail}; "
            "no configuration is rejected because of these data; to repeat: "
            f"{default_command(context.task, 'check')}; see docs/checks.md, When a set counts"
        )
        return None if name in BEYOND_FILLS else DISPUTED


def _verify(context: TuningContext, binary: Binary, workload: Workload, name: str) -> Outcome:
    outcome = outcome_of(context.verify(binary, workload))
    if isinstance(outcome, Failure):
        return replace(outcome, detail=f"with {data_check(name)}: {outcome.detail}")
    return outcome


def default_command(task: TuningTask, verb: str, sizes: Sizes | None = None) -> str:
    """The command that runs or checks the default, at sizes."""
    at = [word for name, size in (sizes or {}).items() for word in ("--size", f"{name}={size}")]
    options = ("-d", str(task.address), "--config", str(task.spec.default), *at)
    return shlex.join(("autotune", verb, str(task.spec.path), *options))


def small_data_workloads(context: TuningContext) -> list[Workload]:
    """The workloads on other data whose results are small enough to be kept ahead, in the order of checks."""
    return [
        workload
        for workload in (on_set.other for _, on_set in _default_workloads(context))
        if sum(array.size_bytes for array in workload.arrays if array.role in ("out", "inout")) <= MAX_BYTES
    ]


def _default_workloads(context: TuningContext) -> Iterator[tuple[str, OnOtherData]]:
    """The workloads of the default on other data, each with the name of the set."""
    default = context.default
    for name in (*DATA_SETS, *context.task.spec.special):
        for workload in on_other_data(name, default.verify_workloads, default.workload):
            yield name, workload


def rounding_is_tolerated(worker: DeviceWorker, workload: OnOtherData) -> bool:
    """True if rounding alone makes no result on other data wrong, as a device process finds."""
    judged = workload.other, workload.usual
    return worker.run(DeviceState.rounding_is_tolerated, *judged, timeout_s=SETUP_TIMEOUT_S) is True


def check_variants(context: TuningContext, builds: Builds, deadline: Deadline) -> OutcomesByConfig:
    """The outcome of each configuration on each variant of the inputs, which the space asks for."""
    by_config: dict[Config, dict[str, Outcome]] = {config: {} for config in builds}
    for number, name in enumerate(context.task.spec.variants, 1):
        context.observer.stage(Stage(of_last_round(VARIANTS), number, len(context.task.spec.variants)))
        for config, (instance, binary) in builds.items():
            outcomes = map(partial(_on_variant, context, config, binary, name), instance.verify_workloads)
            by_config[config][data_check(name)] = NO_TIME if deadline.is_over else worst(outcomes)
    return by_config


def _on_variant(
    context: TuningContext, config: Config, binary: Binary, name: str, workload: Workload
) -> Outcome:
    try:
        varied = context.further_sizes.variant(config, workload, name)
    except SetupError as error:
        return Unchecked(str(error))
    return PASSED if varied is None else _verify(context, binary, varied, name)
