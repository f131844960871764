"""Predicts how long a search still takes: its trials, its last round and the checks before storing."""

from __future__ import annotations

from statistics import mean

from autotune.core.stages import Stage

# the stages of the end, in order: how long each takes, in trials and in addition in seconds
_END = {
    "last round: verifying": (5.0, 0.5),
    "last round: timing, round": (10.0, 0.5),
    "last round: many runs": (1.0, 0.1),
    "last round: other schedules": (4.0, 0.2),
    "last round: other data": (9.0, 0.2),
    "last round: under sanitizers": (0.0, 1.5),
    "estimating what the others promise": (2.0, 1.0),
}
_STAGES = tuple(_END)
_PRIOR = 0.2  # of the end's predicted time: how much the prediction weighs against what was seen of it


class Forecast:
    """The time that is left of a search; all times are in seconds on one clock."""

    def __init__(self, total: int | None, began_s: float) -> None:
        """Begin to count trials; `total` is None if their number is not known."""
        self._total, self._began_s = total, began_s
        self._ended_s: list[float] = []  # when each trial ended
        self._costs_s: list[float] = []
        self._end_began_s: float | None = None
        self._place, self._share = 0, 0.0  # in the end

    def tried(self, cost_s: float, now_s: float) -> None:
        """Count a trial."""
        self._ended_s.append(now_s)
        self._costs_s.append(cost_s)

    def last_round(self, now_s: float) -> None:
        """The end begins, or begins again."""
        self._end_began_s, self._place, self._share = now_s, 0, 0.0

    def stage(self, stage: Stage) -> None:
        """Note how far the end has come."""
        if self._end_began_s is not None and stage.name in _END:
            place = _STAGES.index(stage.name)
            if place >= self._place:
                self._place, self._share = place, (stage.done - 1) / stage.total if stage.total else 0.0

    def left_s(self, now_s: float) -> float | None:
        """The predicted time; None before it can be known."""
        if not self._ended_s:
            return None
        cost_s = mean(self._costs_s[len(self._costs_s) // 2 :])
        parts_s = [trials * cost_s + seconds for trials, seconds in _END.values()]
        if self._end_began_s is None:
            return None if self._total is None else self._trials_left_s(now_s) + sum(parts_s)
        done_s = sum(parts_s[: self._place]) + self._share * parts_s[self._place]
        prior_s = _PRIOR * sum(parts_s)
        scale = (now_s - self._end_began_s + prior_s) / (done_s + prior_s)
        return (sum(parts_s) - done_s) * scale

    def _trials_left_s(self, now_s: float) -> float:
        """The time for trials to come: each takes as long as those of the later half so far."""
        half = len(self._ended_s) // 2
        since_s = self._ended_s[half - 1] if half else self._began_s
        left = max(0, (self._total or 0) - len(self._ended_s))
        return left * (now_s - since_s) / (len(self._ended_s) - half)
