"""The result of a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune.core.outcomes import Outcomes, is_verified
from autotune.core.records import NOISY, Config, Front
from autotune.core.trials import Measurement, Objective, Status, Trial, ratio_interval
from autotune.searchers.base import FASTER, PriorResults, StoppingEstimate
from autotune.tuning.groups import Group
from autotune.tuning.task import TuningTask


@dataclass(frozen=True)
class SearchResult:
    """The result of a search; `final` and `default` are measurements of the last round."""

    task: TuningTask
    engine: str
    winner: Trial
    final: Measurement  # the winner's, in the last round
    default: Measurement
    ties: tuple[Config, ...]  # cannot be told from the winner
    unchecked_ties: tuple[Config, ...]  # nor can these, which are neither checked before storing nor stored
    groups: tuple[Group, ...]  # the groups that the space contrasts, best first
    trials: tuple[Trial, ...]
    resumed: int  # trials taken from the journal
    beside_budget: int  # trials of configurations that the cache held, which cost no budget
    time_was_over: bool  # True if the time limit ended the search
    timed_again: frozenset[Config]  # that the last round timed, or another one of the same binary
    lacked_time: bool  # True if a time limit kept others out of the last round
    journal: Path
    cache_file: Path
    was_served: bool  # the cache held the winner already
    objective: Objective
    objective_name: str  # its expression, if it is the user's own
    metrics: tuple[Mapping[str, float], ...]  # of each trial, as the space names them
    priors: tuple[PriorResults, ...]  # results of other devices and problems that the search used
    stopping_estimate: StoppingEstimate
    uncompared: tuple[str, ...]  # outputs that the reference does not return
    front: Front  # Pareto front of time and energy, where energy is measured
    search_seconds: float  # time of the search without its last round
    seconds: float
    cores_of_others: float  # CPU cores that other programs kept busy meanwhile, on average
    data_sha256: str  # of inputs that come from files or from `inputs`; empty where there are none
    checks: Outcomes  # the worst outcome of each check of the winner and its ties

    @property
    def compares(self) -> bool:
        """True if an output was compared with the reference."""
        return is_verified(self.checks)

    @property
    def cache_root(self) -> Path:
        """The folder of the cache that the result is in."""
        return self.cache_file.parents[1]

    @property
    def counts(self) -> Counter[Status]:
        """Number of trials by status."""
        return Counter(trial.status for trial in self.trials)

    @property
    def failed_last_round(self) -> tuple[Trial, ...]:
        """Trials that succeeded in the search and failed in the last round."""
        return tuple(trial for trial in self.trials if trial.failed_last_round)

    @property
    def speedup(self) -> float:
        """The default's score divided by the winner's, both from the last round."""
        default, best = (measured.score(self.objective) for measured in (self.default, self.final))
        return default / best if default and best else 1.0

    @property
    def speedup_interval(self) -> tuple[float, float] | None:
        """The 95% interval of the speed-up, as `ratio_interval` takes it; None unless times decide."""
        return ratio_interval(self.default, self.final) if self.objective is Objective.TIME else None

    @property
    def coverage(self) -> str:
        """The tried share of the space, and the estimate for the rest, in one sentence."""
        estimate, is_noisy = self.stopping_estimate, (self.final.noise or 0.0) > NOISY
        count = f"{estimate.valid:,} valid configurations"
        if estimate.tried == estimate.valid:
            return f"explored all {count}" if estimate.valid > 1 else "explored the only valid configuration"
        text = f"explored {_percent(estimate.tried / estimate.valid, 2)} of {count}"
        if (chance := estimate.improvement_probability) is None or is_noisy:
            reason = "too noisy" if is_noisy else "too few have a time"
            return f"{text}; {reason} to estimate the rest"
        better = "faster" if self.objective is Objective.TIME else "better"
        return f"{text}; {_percent(chance)} chance that an untried one is at least {FASTER:.0%} {better}"


def _percent(share: float, digits: int = 0) -> str:
    """A percentage that is 0% or 100% only if the share is exactly that: `<1%`, `16%`, `>99%`."""
    text, least = f"{share:.{digits}%}", 10.0 ** -(digits + 2)
    if float(text[:-1]) == 0:
        return f"<{least:.{digits}%}"
    return f">{1 - least:.{digits}%}" if float(text[:-1]) == 100 else text
