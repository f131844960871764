"""The last round: the best few, verified on fresh inputs and timed in turns in a fresh process.

A search's own times were taken minutes apart, so the fastest of them was also the luckiest. Here every
finalist sees the same conditions, and the result is a winner with the set it cannot be told from.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from autotune.core.records import NOISY
from autotune.core.trials import (
    Failure,
    Measurement,
    Objective,
    Rule,
    Status,
    Trial,
    Verdict,
    median_interval,
)
from autotune.evaluation.compiler_pool import CompilerPool
from autotune.evaluation.device_process import conditions, energy, verify_once
from autotune.evaluation.instance import InstanceMaker
from autotune.evaluation.measure import ENERGY_RESOLUTION, bounded_batch
from autotune.evaluation.work_item import MeasurementPolicy
from autotune.evaluation.worker import Worker
from autotune.tuning.turns import Finalist, Lane, Turns, is_settled, take_out_pace

MAX_FINALISTS = 8
FRESH_SEEDS = (1, 2)
ROUNDS = 12
MAX_ROUNDS = 48  # where the fastest one's time is not known well after ROUNDS
MAX_EXTRA_S = 3.0
# on an unsteady machine a few turns of more trials decide who takes part in the last round
MAX_ENTRANTS = 24
HEATS = 6
UNSTEADY = 0.05  # by what a control differs from its earlier time there,
UNSTEADY_SHARE = 0.1  # and how many of them do


@dataclass(frozen=True)
class Finals:
    """Outcome of the last round; `measurements` and `rejected` are by content key."""

    measurements: Mapping[str, Measurement]
    rejected: Mapping[str, Failure]


def finalists(trials: Iterable[Trial], count: int = MAX_FINALISTS) -> list[Trial]:
    """The fastest trials, one for those that share a binary and its measurement.

    One that was timed while the machine was slow, as its control was, counts as faster by that.
    """
    distinct: dict[object, Trial] = {}
    for trial in sorted(by_score(trials), key=_steady_score):
        samples_ms = trial.measurement.samples_ms if trial.measurement else ()
        distinct.setdefault((trial.binary_sha256, samples_ms), trial)
    return list(distinct.values())[:count]


def _steady_score(trial: Trial) -> float:
    control = trial.measurement.control if trial.measurement else None
    return (trial.score or 0.0) / max(1.0, control or 1.0)


def is_unsteady(trials: Iterable[Trial]) -> bool:
    """Whether what was timed a second time in a search, beside others, often took another time."""
    controls = [trial.measurement.control for trial in trials if trial.measurement]
    known = [abs(control - 1) > UNSTEADY for control in controls if control is not None]
    return sum(known) > UNSTEADY_SHARE * len(known)


def by_score(trials: Iterable[Trial]) -> list[Trial]:
    """The trials that have a score, best first."""
    scored = [(trial.score, trial) for trial in trials if trial.score is not None]
    return [trial for _, trial in sorted(scored, key=lambda pair: pair[0])]


def play(
    trials: Sequence[Trial],
    maker: InstanceMaker,
    pool: CompilerPool,
    worker: Worker,
    timeout_s: float,
    protocol: MeasurementPolicy,
) -> Finals:
    """Verify each trial's configuration on fresh inputs, then time those that hold in turns.

    Where the protocol measures energy, each runs for that afterwards, unless one was rejected.
    """
    worker.close()
    instances = [maker.make(trial.config) for trial in trials]
    compilations = [pool.submit(instance.source, instance.options) for instance in instances]
    rejected: dict[str, Failure] = {}
    field: dict[str, Finalist] = {}
    for trial, instance, compilation in zip(trials, instances, compilations, strict=True):
        binary = compilation.result()
        if isinstance(binary, Failure):
            rejected[instance.key] = binary
        else:
            field[instance.key] = Finalist(instance, binary, trial, repeatable=False)
    for seed in (*FRESH_SEEDS, 0):  # all on one before the next: memory holds the arrays of one at a time
        _verify_all(field, rejected, maker, worker, timeout_s, seed)
    batches = _batches(field, rejected)
    lanes = [Lane(key, field[key], batch, []) for key, batch in batches.items()]
    control = Lane(lanes[0].key, lanes[0].finalist, lanes[0].batch, []) if lanes else None
    turns = Turns(lanes + ([control] if control else []), rejected, worker, timeout_s)
    _play_rounds(turns, lanes, rejected)
    found = worker.run(conditions, timeout_s=timeout_s)
    left = [lane for lane in lanes if lane.key not in rejected]
    noise = None
    if control and control.key not in rejected:
        take_out_pace(turns.lanes if not rejected else left)
        noise = round(abs(median(control.values_ms) / median(lanes[0].values_ms) - 1), 5)
    measurements = {
        lane.key: Measurement(
            tuple(lane.values_ms),
            Rule.FINALS,
            batch=lane.batch,
            conditions={} if isinstance(found, Failure) else dict(found),
            chosen_from=len(left),
            noise=noise,
        )
        for lane in left
    }
    if protocol.energy_s > 0 and not rejected:
        measurements = _with_energy(field, measurements, rejected, worker, timeout_s, protocol)
    return Finals(measurements, rejected)


def _play_rounds(turns: Turns, lanes: Sequence[Lane], rejected: Mapping[str, Failure]) -> None:
    """ROUNDS, and as many again while nobody failed and the fastest one's time is not known well."""
    turns.play(ROUNDS)
    began = time.perf_counter()
    for _ in range(ROUNDS, MAX_ROUNDS, ROUNDS):
        if rejected or is_settled(lanes) or time.perf_counter() - began > MAX_EXTRA_S:
            return
        turns.play(ROUNDS)


def field_of(
    trials: Iterable[Trial],
    maker: InstanceMaker,
    pool: CompilerPool,
    worker: Worker,
    timeout_s: float,
    objective: Objective,
) -> list[Trial]:
    """The fastest trials for a last round; on an unsteady machine those that prove the fastest of more."""
    trials = list(trials)
    if objective is not Objective.TIME or not is_unsteady(trials):
        return finalists(trials)
    return narrow(finalists(trials, MAX_ENTRANTS), maker, pool, worker, timeout_s)


def narrow(
    trials: Sequence[Trial], maker: InstanceMaker, pool: CompilerPool, worker: Worker, timeout_s: float
) -> list[Trial]:
    """The best few of more trials than the last round takes, timed in a few turns of it.

    One that fails in a turn is kept, so that the last round finds out again and says so.
    """
    instances = [maker.make(trial.config) for trial in trials]
    compilations = [pool.submit(instance.source, instance.options) for instance in instances]
    lanes, rejected = [], dict[str, Failure]()
    for trial, instance, compilation in zip(trials, instances, compilations, strict=True):
        binary = compilation.result()
        if isinstance(binary, Failure):
            rejected[instance.key] = binary
        else:
            batch = trial.measurement.batch if trial.measurement else 1
            lanes.append(Lane(instance.key, Finalist(instance, binary, trial, batch > 1), batch, []))
    Turns(lanes, rejected, worker, timeout_s, min).play(HEATS)
    failed = [trial for trial in trials if trial.key in rejected]
    times_ms = {lane.key: median(lane.values_ms) for lane in lanes if lane.key not in rejected}
    ranked = sorted((trial for trial in trials if trial.key in times_ms), key=lambda one: times_ms[one.key])
    return failed + ranked[:MAX_FINALISTS]


def _with_energy(
    field: Mapping[str, Finalist],
    measurements: Mapping[str, Measurement],
    rejected: dict[str, Failure],
    worker: Worker,
    timeout_s: float,
    protocol: MeasurementPolicy,
) -> dict[str, Measurement]:
    found = {}
    for key, measurement in measurements.items():
        finalist = field[key]
        case = finalist.instance.case
        answer: float | Failure | None = worker.prepare(case) or worker.run(
            energy,
            finalist.binary,
            case,
            timeout_s=timeout_s + protocol.energy_limit_s,
            run_ms=measurement.median_ms,
            seconds=protocol.energy_s,
            repeatable=finalist.repeatable,
        )
        if isinstance(answer, Failure):
            rejected[key] = answer
        elif answer is None:
            rejected[key] = Failure(Status.MEASUREMENT_ERROR, "the device counted no energy")
        else:
            found[key] = replace(measurement, energy_j=answer)
    return found


def indistinguishable(winner: Measurement, other: Measurement, objective: Objective) -> bool:
    """Whether the other's times, round by round over the winner's, reach 1, or the two differ by noise only.

    The interval of these ratios allows for the winner having been chosen.
    """
    if objective is Objective.TIME:
        ratios = [theirs / ours for theirs, ours in zip(other.samples_ms, winner.samples_ms, strict=True)]
        slower = median_interval(ratios, winner.chosen_from)[0]
        return slower <= 1 or other.median_ms <= winner.median_ms * (1 + (winner.noise or 0.0))
    return (other.score(objective) or math.inf) <= (winner.score(objective) or 0.0) * (1 + ENERGY_RESOLUTION)


def is_final(found: Measurement, objective: Objective) -> bool:
    """Whether a last round of the journal need not be repeated: it was not noisy, and knows the objective."""
    return bool(found.score(objective)) and (found.noise or 0.0) <= NOISY


def _verify_all(
    field: dict[str, Finalist],
    rejected: dict[str, Failure],
    maker: InstanceMaker,
    worker: Worker,
    timeout_s: float,
    seed: int,
) -> None:
    """Verify every finalist on the inputs of one more seed; the last seed is that of the turns."""
    for key, finalist in field.items():
        if key in rejected:
            continue
        problem = finalist.instance.case.problem
        case = maker.case(finalist.instance.config, replace(problem, seed=problem.seed + seed))
        verdict: Verdict | Failure = worker.prepare(case) or worker.run(
            verify_once, finalist.binary, case, timeout_s=timeout_s
        )
        if isinstance(verdict, Failure):
            rejected[key] = verdict
        elif verdict.failure is not None:
            rejected[key] = verdict.failure
            worker.close()  # it may have written anywhere
        else:
            field[key] = replace(finalist, repeatable=verdict.repeatable)


def _batches(field: Mapping[str, Finalist], rejected: Mapping[str, Failure]) -> dict[str, int]:
    """The search's batch for all, for only the first run of one is cold; 1 where one cannot be repeated."""
    left = {key: entry for key, entry in field.items() if key not in rejected}
    known = {key: entry.trial.measurement for key, entry in left.items() if entry.trial.measurement}
    repeatable = all(entry.repeatable for entry in left.values())
    shared = max((found.batch for found in known.values()), default=1) if repeatable else 1
    return {key: bounded_batch(shared, known[key].median_ms) if key in known else shared for key in left}
