"""Turns: entries timed one after the other, round by round, so that all see the same conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import mean, median

from autotune.core.trials import Binary, Failure, Trial, median_interval
from autotune.evaluation.device_process import sample
from autotune.evaluation.instance import KernelInstance
from autotune.evaluation.worker import Worker

SAMPLES_PER_TURN = 2  # their mean counts as one: samples of one turn have more in common than those of two
PRECISION = 0.02  # of its median: where an interval is narrower, the time is known well
SHIFT = 0.03  # a round is slower or faster as a whole where all of its turns are, by more than this


@dataclass(frozen=True)
class Finalist:
    """A configuration that takes turns, with its trial of the search."""

    instance: KernelInstance
    binary: Binary
    trial: Trial
    repeatable: bool


@dataclass
class Lane:
    """One entry of the turns, with a value of each round in ms."""

    key: str
    finalist: Finalist
    batch: int
    values_ms: list[float]


class Turns:
    """Times the lanes in turns, each round in another order; who fails is rejected and left out."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        rejected: dict[str, Failure],
        worker: Worker,
        timeout_s: float,
        value: Callable[[tuple[float, ...]], float] = mean,
    ) -> None:
        self.lanes = list(lanes)
        self._value = value  # of the samples of one turn
        self._order, self._random = list(lanes), Random(0)
        self._rejected, self._worker, self._timeout_s = rejected, worker, timeout_s
        # several problems where shapes follow the configuration: all at hand if they fit, else one at a time
        worker.prepare(*(lane.finalist.instance.case for lane in lanes))

    def play(self, rounds: int) -> None:
        """So many more rounds."""
        for _ in range(rounds):
            self._random.shuffle(self._order)  # nobody always follows the same neighbour
            for lane in self._order:
                if lane.key not in self._rejected:
                    self._turn(lane)

    def _turn(self, lane: Lane) -> None:
        case = lane.finalist.instance.case
        answer: tuple[float, ...] | Failure = self._worker.prepare(case) or self._worker.run(
            sample,
            lane.finalist.binary,
            case,
            timeout_s=self._timeout_s,
            count=SAMPLES_PER_TURN,
            batch=lane.batch,
            repeatable=lane.finalist.repeatable,
        )
        if isinstance(answer, Failure):
            self._rejected[lane.key] = answer
        else:
            lane.values_ms.append(self._value(answer))


def is_settled(lanes: Sequence[Lane]) -> bool:
    """Whether the time of the fastest is known well."""
    fastest = min((lane.values_ms for lane in lanes), key=median, default=[])
    if not fastest:
        return True
    low, high = median_interval(fastest, len(lanes))
    return high - low <= PRECISION * median(fastest)


def take_out_pace(lanes: Sequence[Lane]) -> None:
    """Take out of every value by what its round was slower or faster as a whole: a clock may have changed."""
    medians = [median(lane.values_ms) for lane in lanes]
    for number, values in enumerate(zip(*(lane.values_ms for lane in lanes), strict=True)):
        pace = median(value / usual for value, usual in zip(values, medians, strict=True))
        for lane in lanes if abs(pace - 1) > SHIFT else ():
            lane.values_ms[number] /= pace
