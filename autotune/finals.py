"""The last round: the best few, verified on fresh inputs and timed in turns in a fresh process.

A search's own times were taken minutes apart, so the fastest of them was also the luckiest. Here every
finalist sees the same conditions, and the result is a winner with the set it cannot be told from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import mean, median

from autotune.bench import conditions, energy, sample, verify_once
from autotune.candidates import Candidate, CandidateMaker
from autotune.compiling import CompilerPool
from autotune.jobs import Protocol
from autotune.measure import ENERGY_RESOLUTION, bounded_batch
from autotune.trials import Binary, Failure, Measurement, Objective, Trial, Verdict
from autotune.worker import Worker

MOST_FINALISTS = 8
FRESH_SEEDS = (1, 2)
ROUNDS = 12
SAMPLES_PER_TURN = 2  # their mean counts as one: samples of one turn have more in common than those of two
CONTROL = "control"  # the first finalist, entered a second time: what the two differ by is noise


@dataclass(frozen=True)
class Finals:
    """Outcome of the last round; `measurements` and `rejected` are by content key."""

    measurements: Mapping[str, Measurement]
    rejected: Mapping[str, Failure]


@dataclass(frozen=True)
class _Finalist:
    candidate: Candidate
    binary: Binary
    trial: Trial
    repeatable: bool


def finalists(trials: Iterable[Trial]) -> list[Trial]:
    """The fastest trials, one for those that share a binary and its measurement."""
    distinct: dict[object, Trial] = {}
    for trial in by_score(trials):
        samples_ms = trial.measurement.samples_ms if trial.measurement else ()
        distinct.setdefault((trial.binary_sha256, samples_ms), trial)
    return list(distinct.values())[:MOST_FINALISTS]


def by_score(trials: Iterable[Trial]) -> list[Trial]:
    """The trials that have a score, best first."""
    scored = [(trial.score, trial) for trial in trials if trial.score is not None]
    return [trial for _, trial in sorted(scored, key=lambda pair: pair[0])]


def play(
    trials: Sequence[Trial],
    maker: CandidateMaker,
    pool: CompilerPool,
    worker: Worker,
    timeout_s: float,
    protocol: Protocol,
) -> Finals:
    """Verify each trial's configuration on fresh inputs, then time those that hold in turns.

    Where the protocol measures energy, each runs for that afterwards, unless one was rejected.
    """
    worker.close()
    candidates = [maker.make(trial.config) for trial in trials]
    compilations = [pool.submit(candidate.source, candidate.options) for candidate in candidates]
    rejected: dict[str, Failure] = {}
    field: dict[str, _Finalist] = {}
    for trial, candidate, compilation in zip(trials, candidates, compilations, strict=True):
        binary = compilation.result()
        if isinstance(binary, Failure):
            rejected[candidate.key] = binary
        else:
            field[candidate.key] = _Finalist(candidate, binary, trial, repeatable=False)
    for seed in (*FRESH_SEEDS, 0):  # all on one before the next: memory holds the arrays of one at a time
        _verify_all(field, rejected, maker, worker, timeout_s, seed)
    twin = next((key for key in field if key not in rejected), None)
    if twin is not None:
        field[CONTROL] = field[twin]
    batches = _batches(field, rejected)
    samples = _take_turns(field, batches, rejected, worker, timeout_s)
    if twin is not None and CONTROL in rejected:
        rejected[twin] = rejected.pop(CONTROL)
    found = worker.run(conditions, timeout_s=timeout_s)
    known = {} if isinstance(found, Failure) else dict(found)
    if twin is not None and twin not in rejected:
        known["noise"] = round(abs(median(samples[CONTROL]) / median(samples[twin]) - 1), 5)
    measurements = {
        key: Measurement(tuple(samples[key]), "finals", batch=batches[key], conditions=known)
        for key in field
        if key not in rejected and key != CONTROL
    }
    if protocol.energy_s > 0 and not rejected:
        measurements = _with_energy(field, measurements, rejected, worker, timeout_s, protocol)
    return Finals(measurements, rejected)


def _with_energy(
    field: Mapping[str, _Finalist],
    measurements: Mapping[str, Measurement],
    rejected: dict[str, Failure],
    worker: Worker,
    timeout_s: float,
    protocol: Protocol,
) -> dict[str, Measurement]:
    found = {}
    for key, measurement in measurements.items():
        finalist = field[key]
        case = finalist.candidate.case
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
        else:
            found[key] = replace(measurement, energy_j=answer)
    return found


def indistinguishable(winner: Measurement, other: Measurement, objective: Objective) -> bool:
    """Whether the intervals of the two medians overlap, or the two differ by less than their noise."""
    if objective is Objective.TIME:
        noise_ms = winner.median_ms * float(winner.conditions.get("noise", 0.0))
        return other.interval_ms[0] <= winner.interval_ms[1] or other.median_ms - winner.median_ms <= noise_ms
    return (other.score(objective) or math.inf) <= (winner.score(objective) or 0.0) * (1 + ENERGY_RESOLUTION)


def _verify_all(
    field: dict[str, _Finalist],
    rejected: dict[str, Failure],
    maker: CandidateMaker,
    worker: Worker,
    timeout_s: float,
    seed: int,
) -> None:
    """Verify every finalist on the inputs of one more seed; the last seed is that of the turns."""
    for key, finalist in field.items():
        if key in rejected:
            continue
        problem = finalist.candidate.case.problem
        case = maker.case(finalist.candidate.config, replace(problem, seed=problem.seed + seed))
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


def _batches(field: Mapping[str, _Finalist], rejected: Mapping[str, Failure]) -> dict[str, int]:
    """The search's batch for all, for only the first run of one is cold; 1 where one cannot be repeated."""
    left = {key: entry for key, entry in field.items() if key not in rejected}
    known = {key: entry.trial.measurement for key, entry in left.items() if entry.trial.measurement}
    repeatable = all(entry.repeatable for entry in left.values())
    shared = max((found.batch for found in known.values()), default=1) if repeatable else 1
    return {key: bounded_batch(shared, known[key].median_ms) if key in known else shared for key in left}


def _take_turns(
    field: Mapping[str, _Finalist],
    batches: Mapping[str, int],
    rejected: dict[str, Failure],
    worker: Worker,
    timeout_s: float,
) -> dict[str, list[float]]:
    """A value of each round for every finalist, in ms; who fails is rejected and left out from then on."""
    values: dict[str, list[float]] = {key: [] for key in field}
    keys, order = list(field), Random(0)
    # several problems where shapes follow the configuration: all at hand if they fit, else one at a time
    worker.prepare(*(field[key].candidate.case for key in batches))
    for _ in range(ROUNDS):
        order.shuffle(keys)  # nobody always follows the same neighbour
        for key in keys:
            if key in rejected:
                continue
            finalist = field[key]
            case = finalist.candidate.case
            answer: tuple[float, ...] | Failure = worker.prepare(case) or worker.run(
                sample,
                finalist.binary,
                case,
                timeout_s=timeout_s,
                count=SAMPLES_PER_TURN,
                batch=batches[key],
                repeatable=finalist.repeatable,
            )
            if isinstance(answer, Failure):
                rejected[key] = answer
            else:
                values[key].append(mean(answer))
    return values
