"""What a search found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from autotune.core.records import Config, Front
from autotune.core.trials import Measurement, Objective, Status, Trial
from autotune.searchers.base import SourceResults
from autotune.searchers.surrogate import StoppingEstimate
from autotune.tuning.groups import Group
from autotune.tuning.task import TuningTask


@dataclass(frozen=True)
class Result:
    """What a search found out; `final` is the winner's measurement in the last round."""

    task: TuningTask
    engine: str
    winner: Trial
    final: Measurement
    default: Measurement
    ties: tuple[Config, ...]
    groups: tuple[Group, ...]  # that the space sets against each other, best first
    trials: tuple[Trial, ...]
    resumed: int
    journal: Path
    cache_file: Path
    was_served: bool  # the cache had the winner already
    objective: Objective
    priors: tuple[SourceResults, ...]  # what the search was told of other devices and problems
    stopping_estimate: StoppingEstimate
    uncompared: tuple[str, ...]  # outputs that the reference does not return
    compares: bool  # it returns others
    front: Front  # where energy counts: configurations that none is faster and thriftier than
    search_seconds: float  # without the last round
    seconds: float

    @property
    def counts(self) -> Counter[Status]:
        """How many trials ended how."""
        return Counter(trial.status for trial in self.trials)

    @property
    def struck(self) -> tuple[Trial, ...]:
        """Trials that failed in a last round."""
        return tuple(trial for trial in self.trials if trial.failed_last_round)

    @property
    def speedup(self) -> float:
        """The default's score over the winner's, both from the last round: how many times as fast."""
        default, best = (measured.score(self.objective) for measured in (self.default, self.final))
        return default / best if default and best else 1.0
