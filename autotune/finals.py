"""The last round: the best few, verified on fresh inputs and timed in turns in a fresh process.

A search's own times were taken minutes apart, so the fastest of them was also the luckiest. Here every
finalist sees the same conditions, and the result is a winner with the set it cannot be told from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.bench import sample, verify_once
from autotune.candidates import Candidate, CandidateMaker
from autotune.compiling import CompilerPool
from autotune.trials import Binary, Failure, Measurement, Trial, Verdict
from autotune.worker import Worker

MOST_FINALISTS = 8
FRESH_SEEDS = (1, 2)
ROUNDS = 8
SAMPLES_PER_TURN = 3


@dataclass(frozen=True)
class Finals:
    """Outcome of the last round; `measurements` and `rejected` are by content key."""

    measurements: Mapping[str, Measurement]
    rejected: Mapping[str, Failure]


@dataclass(frozen=True)
class _Finalist:
    candidate: Candidate
    binary: Binary
    batch: int
    repeatable: bool


def finalists(trials: Iterable[Trial]) -> list[Trial]:
    """The fastest trials, one for those that share a binary and its measurement."""
    distinct: dict[object, Trial] = {}
    for trial in by_time(trials):
        samples_ms = trial.measurement.samples_ms if trial.measurement else ()
        distinct.setdefault((trial.binary_sha256, samples_ms), trial)
    return list(distinct.values())[:MOST_FINALISTS]


def by_time(trials: Iterable[Trial]) -> list[Trial]:
    """The trials that have a time, fastest first."""
    timed = [(trial.time_ms, trial) for trial in trials if trial.time_ms is not None]
    return [trial for _, trial in sorted(timed, key=lambda pair: pair[0])]


def play(
    trials: Sequence[Trial], maker: CandidateMaker, pool: CompilerPool, worker: Worker, timeout_s: float
) -> Finals:
    """Verify each trial's configuration on fresh inputs, then time those that hold in turns."""
    worker.close()
    candidates = [maker.make(trial.config) for trial in trials]
    compilations = [pool.submit(candidate.source, candidate.options) for candidate in candidates]
    rejected: dict[str, Failure] = {}
    field: list[_Finalist] = []
    for trial, candidate, compilation in zip(trials, candidates, compilations, strict=True):
        batch = trial.measurement.batch if trial.measurement else 1
        admitted = _admit(maker, candidate, compilation.result(), batch, worker, timeout_s)
        if isinstance(admitted, Failure):
            rejected[candidate.key] = admitted
        else:
            field.append(admitted)
    return _take_turns(field, rejected, worker, timeout_s)


def indistinguishable(winner: Measurement, other: Measurement) -> bool:
    """Whether the intervals of the two medians overlap."""
    return other.interval_ms[0] <= winner.interval_ms[1]


def _admit(
    maker: CandidateMaker,
    candidate: Candidate,
    binary: Binary | Failure,
    batch: int,
    worker: Worker,
    timeout_s: float,
) -> _Finalist | Failure:
    """Verify on two fresh seeds, then on the inputs that the turns are timed on."""
    if isinstance(binary, Failure):
        return binary
    problem = candidate.case.problem
    fresh = [maker.case(candidate.config, replace(problem, seed=problem.seed + seed)) for seed in FRESH_SEEDS]
    repeatable = False
    for case in (*fresh, candidate.case):
        verdict: Verdict | Failure = worker.run(verify_once, binary, case, timeout_s=timeout_s)
        failure = verdict if isinstance(verdict, Failure) else verdict.failure
        if failure is not None:
            return failure
        repeatable = isinstance(verdict, Verdict) and verdict.repeatable
    return _Finalist(candidate, binary, batch, repeatable)


def _take_turns(
    field: list[_Finalist], rejected: dict[str, Failure], worker: Worker, timeout_s: float
) -> Finals:
    samples: dict[str, list[float]] = {finalist.candidate.key: [] for finalist in field}
    for turn in range(ROUNDS):
        first = turn % max(1, len(field))
        for finalist in field[first:] + field[:first]:  # nobody always follows the same neighbour
            key = finalist.candidate.key
            if key in rejected:
                continue
            answer: tuple[float, ...] | Failure = worker.run(
                sample,
                finalist.binary,
                finalist.candidate.case,
                timeout_s=timeout_s,
                count=SAMPLES_PER_TURN,
                batch=finalist.batch,
                repeatable=finalist.repeatable,
            )
            if isinstance(answer, Failure):
                rejected[key] = answer
            else:
                samples[key] += answer
    measurements = {
        finalist.candidate.key: Measurement(
            tuple(samples[finalist.candidate.key]), "finals", batch=finalist.batch
        )
        for finalist in field
        if finalist.candidate.key not in rejected
    }
    return Finals(measurements, rejected)
