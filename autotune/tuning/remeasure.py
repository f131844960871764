"""Measures finalists again: verified on fresh inputs, and timed in turns in a fresh process.

The times of a search were taken minutes apart, so the fastest trial was also a lucky one. In the last round
all finalists run under the same conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from autotune.core import timeline
from autotune.core.outcomes import FRESH_INPUTS, NO_TIME, PASSED, Outcome, Outcomes
from autotune.core.records import Config
from autotune.core.stages import COMPILING, VERIFYING, Stage, of_last_round
from autotune.core.trials import Failure, Measurement, Objective, Rule, Status, Trial
from autotune.errors import ExpressionError
from autotune.evaluation.device_samples import conditions, energy
from autotune.evaluation.instance import InstanceMaker
from autotune.evaluation.stopwatch import bounded_batch
from autotune.problem.workload import Workload
from autotune.processes.deadline import Deadline
from autotune.space.arguments import INPUTS
from autotune.tuning.context import BuiltConfig, TuningContext
from autotune.tuning.data_checks import small_data_workloads
from autotune.tuning.turns import Series, Turns, is_precise, remove_shifts

ROUNDS = 13  # with so many, the interval of the best of nine leaves out a sample at each end
MAX_ROUNDS = 52  # in all, if the fastest finalist's time is not precise before
MAX_EXTRA_S = 2.0
FRESH_SEEDS = (1, 2)  # added to the problem's seed, they give inputs that the search has not used
OWN_SEED = 0  # added to it, gives the search's own inputs
SEEDS = (*FRESH_SEEDS, OWN_SEED)  # finalists are verified on the inputs of these, in this order


@dataclass(frozen=True)
class Remeasurement:
    """Outcome of the last round: measurements by content key, and reasons for rejections."""

    measurements: Mapping[str, Measurement]
    rejected: Mapping[Config, Failure]
    on_fresh_inputs: Outcomes  # the outcome on fresh inputs; empty if none could be drawn


def remeasure(
    context: TuningContext,
    trials: Sequence[Trial],
    deadline: Deadline,
    seeds: Sequence[int] = SEEDS,
) -> Remeasurement:
    """Verify the trials' configurations on fresh inputs, then time in turns what has passed.

    If the objective may need energy and no configuration was rejected, their energy is measured last. After
    the deadline no more inputs are drawn, and after a few rounds no further one begins. The finalists are
    timed on the inputs of the last seed.
    """
    seeds = distinct_seeds(context.maker, seeds)
    fresh = fresh_workloads(context.maker, trials[0].config, seeds)
    context.observer.stage(Stage(of_last_round("waiting for references")))
    with timeline.span("wait: references"):
        context.references.settle(fresh)
    context.worker.replace_if_used()
    finalists = _Finalists(context, trials)
    # seeds outermost: memory holds the arrays of one workload at a time
    outcomes: dict[str, Outcome] = {FRESH_INPUTS: PASSED} if seeds != (OWN_SEED,) else {}
    for number in range(len(seeds)):
        if number < len(seeds) - 1 and deadline.is_over:
            outcomes[FRESH_INPUTS] = NO_TIME
        else:
            finalists.verify(seeds, number)
    measurements = finalists.time(deadline)
    reads_energy = context.objective is not Objective.TIME or context.scoring.needs_energy
    if context.policy.energy_s > 0 and not finalists.rejected and reads_energy:
        measurements = finalists.with_energy(measurements)
    measurements = finalists.with_values(measurements)
    keys = {trial.config: trial.key for trial in trials}
    by_key = {keys[config]: measurement for config, measurement in measurements.items()}
    return Remeasurement(by_key, finalists.rejected, outcomes)


class _Finalists:
    """The finalists by configuration, and the reasons for rejections."""

    def __init__(self, context: TuningContext, trials: Sequence[Trial]) -> None:
        """Compile the finalists."""
        self._context, self._trials = context, {trial.config: trial for trial in trials}
        self._builds, self.rejected = context.build(self._trials, COMPILING)
        self._repeatable: dict[Config, bool] = {}  # False: runs need restored arrays

    def verify(self, seeds: Sequence[int], number: int) -> None:
        """Verify every finalist on the inputs of one seed; the last seed's are timed as well."""
        context, count = self._context, len(self._builds)
        for done, (config, (instance, binary)) in enumerate(self._builds.items(), number * count + 1):
            if config in self.rejected:
                continue
            context.observer.stage(Stage(VERIFYING, done, len(seeds) * count))
            workload = workload_with_seed(context.maker, config, seeds[number])
            failure = context.verify(binary, workload)
            if failure is not None:
                self.rejected[config] = failure
            else:
                self._builds[config] = BuiltConfig(replace(instance, workload=workload), binary)
                self._repeatable[config] = context.is_repeatable(workload)

    def time(self, deadline: Deadline) -> dict[Config, Measurement]:
        """Time the remaining finalists in turns.

        The first finalist has a twin, a series of the same binary: their difference is the noise.
        """
        context, rejected = self._context, self.rejected
        series = self._series()
        twin = [Series(timed.built, timed.batch, timed.repeatable) for timed in series[:1]]
        for timed in (*series[:1], *twin):
            timed.stays = True
        turns = Turns(context, series + twin, rejected)
        self._run_rounds(turns, series, deadline)
        answer = context.worker.run(conditions, timeout_s=context.timeout_s)
        left = [timed for timed in series if timed.config not in rejected]
        noise = None
        if twin and twin[0].config not in rejected:
            remove_shifts(left if rejected else series + twin)
            noise = round(abs(median(twin[0].values_ms) / median(series[0].values_ms) - 1), 5)
        return {
            timed.config: Measurement(
                tuple(timed.values_ms),
                Rule.LAST_ROUND,
                batch=timed.batch,
                conditions={} if isinstance(answer, Failure) else dict(answer),
                chosen_from=len(left),
                noise=noise,
            )
            for timed in left
        }

    def _run_rounds(self, turns: Turns, series: Sequence[Series], deadline: Deadline) -> None:
        """Run ROUNDS rounds, and more while none is rejected and the fastest time is not precise."""
        turns.run(ROUNDS, deadline)
        deadline = Deadline.after(deadline.left_s(MAX_EXTRA_S))
        for _ in range(ROUNDS, MAX_ROUNDS, ROUNDS):
            if self.rejected or deadline.is_over or is_precise(series, self._context.objective):
                return
            turns.run(ROUNDS, deadline)

    def _series(self) -> list[Series]:
        """The remaining finalists with the search's batch: equally many of their runs find a warm cache.

        The batch is 1 if a finalist cannot be repeated without restoring its arrays.
        """
        left = [config for config in self._builds if config not in self.rejected]
        earlier = {config: measured for config in left if (measured := self._trials[config].measurement)}
        is_batched = all(self._repeatable[config] for config in left)
        shared = max((measured.batch for measured in earlier.values()), default=1) if is_batched else 1
        return [
            Series(
                self._builds[config],
                bounded_batch(shared, earlier[config].median_ms) if config in earlier else shared,
                self._repeatable[config],
            )
            for config in left
        ]

    def with_energy(self, measurements: Mapping[Config, Measurement]) -> dict[Config, Measurement]:
        """Measure the energy of each finalist, and reject it if that fails."""
        context, measured = self._context, {}
        for config, measurement in measurements.items():
            instance, binary = self._builds[config]
            answer = context.run(
                energy,
                binary,
                instance.workload,
                context.policy.call_mode,
                timeout_s=context.timeout_s + context.policy.energy_limit_s,
                run_ms=measurement.median_ms,
                seconds=context.policy.energy_s,
                repeatable=self._repeatable[config],
            )
            if isinstance(answer, Failure):
                self.rejected[config] = answer
            elif answer is None:
                self.rejected[config] = Failure(Status.MEASUREMENT_ERROR, "the device counted no energy")
            else:
                measured[config] = replace(measurement, energy_j=answer)
        return measured

    def with_values(self, measurements: Mapping[Config, Measurement]) -> dict[Config, Measurement]:
        """Compute the user's objective of each finalist, and reject it if that fails."""
        valued = {}
        for config, measurement in measurements.items():
            try:
                valued[config] = self._context.scoring.valued(self._trials[config], measurement)
            except ExpressionError as error:
                self.rejected[config] = Failure(Status.MEASUREMENT_ERROR, f"objective: {error}")
        return valued


def distinct_seeds(maker: InstanceMaker, seeds: Sequence[int]) -> tuple[int, ...]:
    """Leave out fresh seeds that give the inputs of the search; return OWN_SEED if none is left."""
    problem = maker.space.problem
    distinct = tuple(
        seed
        for seed in seeds
        if seed == OWN_SEED or not maker.has_same_inputs(problem, replace(problem, seed=problem.seed + seed))
    )
    return distinct or (OWN_SEED,)


def workload_with_seed(maker: InstanceMaker, config: Config, seed: int) -> Workload:
    """The workload of a configuration with the inputs of a seed, which is added to the search's."""
    problem = maker.space.problem
    return maker.workload(config, replace(problem, seed=problem.seed + seed))


def fresh_workloads(maker: InstanceMaker, config: Config, seeds: Sequence[int]) -> tuple[Workload, ...]:
    """The workloads with fresh inputs, if the reference gives their results."""
    fresh = (workload_with_seed(maker, config, seed) for seed in seeds if seed != OWN_SEED)
    return tuple(workload for workload in fresh if not workload.trusted)


def begin_references(context: TuningContext) -> None:
    """Begin to compute the references of the last round next to the search, where that disturbs no timing.

    It skips inputs from files and functions: reading or making them takes time as well.
    """
    task = context.task
    is_here = context.fleet is None or context.fleet.is_here
    fills = {argument.fill.kind for argument in task.spec.arguments if argument.fill is not None}
    is_aside = task.device.kind == "gpu" and not task.reference.may_use_device
    if is_here and is_aside and not fills & {"file", INPUTS}:
        seeds = distinct_seeds(context.maker, SEEDS)
        fresh = fresh_workloads(context.maker, task.spec.default, seeds)
        context.references.begin(fresh, small_data_workloads(context))
