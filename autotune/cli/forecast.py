"""Predicts how long a search still takes: its trials, its last round and the checks before storing."""

from __future__ import annotations

from statistics import mean

from autotune.core.stages import TIMING, VERIFYING, Stage
from autotune.tuning.winner_checks import CHECKS, Cost

_FINALISTS, _STORED = 9, 4  # until they are known: finalists, configurations to check
_OF_FINALISTS = {VERIFYING: Cost(0.5, trials=0.5), TIMING: Cost(0.5, trials=1.1)}
_STAGES = (*_OF_FINALISTS.items(), *((check.stage, check.cost) for check in CHECKS))  # of the end, in order
_NAMES = [name for name, _ in _STAGES]
_PRIOR = 0.3  # of the end's predicted time: how much the prediction weighs against what was seen of it


class Forecast:
    """The time that is left of a search; all times are in seconds on one clock."""

    def __init__(self, total: int | None, began_s: float) -> None:
        """Begin to count trials; `total` is None if their number is not known."""
        self._total, self._began_s = total, began_s
        self._ended_s: list[float] = []  # when each trial ended
        self._costs_s: list[float] = []
        self._end_began_s: float | None = None
        self._told_s = began_s  # when something was last known to have ended or begun
        self._place, self._share = 0, 0.0  # in the end
        self._finalists, self._stored = _FINALISTS, _STORED
        self._steps = {name: cost.steps for name, cost in _STAGES if cost.steps is not None}

    def tried(self, cost_s: float, now_s: float) -> None:
        """Count a trial."""
        self._told_s = now_s
        self._ended_s.append(now_s)
        self._costs_s.append(cost_s)

    def last_round(self, finalists: int, now_s: float) -> None:
        """The end begins, or begins again."""
        self._finalists, self._end_began_s = finalists, now_s
        self._told_s = now_s
        self._place, self._share = 0, 0.0

    def stage(self, stage: Stage, now_s: float) -> None:
        """Note how far the end has come; a reference is computed within one of its stages."""
        self._told_s = now_s
        if self._end_began_s is None or stage.name not in _NAMES[self._place :]:
            return
        self._place, self._share = _NAMES.index(stage.name), 0.0
        self._stored = stage.configs or self._stored
        if stage.total:
            self._share = (stage.done - 1) / stage.total
            if stage.name in self._steps:
                self._steps[stage.name] = stage.total

    def left_s(self, now_s: float) -> float | None:
        """The predicted time; None before it can be known, and once a stage has taken all of it.

        It is predicted anew whenever something is told, and runs down until then: a slow stage makes what
        follows no longer while it lasts.
        """
        found_s = self._predicted_s(self._told_s)
        left_s = None if found_s is None else found_s - (now_s - self._told_s)
        return left_s if left_s is None or left_s > 0 else None

    def _predicted_s(self, now_s: float) -> float | None:
        """The time that was left when something was told."""
        if not self._ended_s:
            return None
        parts_s = self._parts_s(mean(self._costs_s[len(self._costs_s) // 2 :]))
        if self._end_began_s is None:
            return None if self._total is None else self._trials_left_s(now_s) + sum(parts_s)
        done_s = sum(parts_s[: self._place]) + self._share * parts_s[self._place]
        prior_s = _PRIOR * sum(parts_s)
        scale = (now_s - self._end_began_s + prior_s) / (done_s + prior_s)
        return (sum(parts_s) - done_s) * scale

    def _parts_s(self, cost_s: float) -> list[float]:
        """The time of each stage of the end, if a trial took `cost_s` on the device."""
        return [
            cost.base_s + cost.trials * self._configs(name) * self._steps.get(name, 1) * cost_s
            for name, cost in _STAGES
        ]

    def _configs(self, name: str) -> int:
        """The number of configurations that a stage of the end is for."""
        return self._finalists if name in _OF_FINALISTS else self._stored

    def _trials_left_s(self, now_s: float) -> float:
        """The time for trials to come: each takes as long as those of the later half so far."""
        half = len(self._ended_s) // 2
        since_s = self._ended_s[half - 1] if half else self._began_s
        left = max(0, (self._total or 0) - len(self._ended_s))
        return left * (now_s - since_s) / (len(self._ended_s) - half)
