"""Groups of configurations that a space contrasts, such as two different launch plans.

The best of every group takes part in the last round, so the result can say which group wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autotune.core.expressions import parse
from autotune.core.trials import Measurement, Objective, Trial
from autotune.space import ValidSpace
from autotune.tuning.finalists import by_score
from autotune.tuning.ties import indistinguishable


@dataclass(frozen=True)
class Group:
    """One group after a search: how many were tried, and the measurement of its best in the last round."""

    name: str
    tried: int
    best: Measurement | None  # None: no configuration of the group has a time


def group_leaders(space: ValidSpace, trials: Iterable[Trial]) -> list[Trial]:
    """The best trial of each group that has one."""
    return [scored[0] for group in _members(space, trials).values() if (scored := by_score(group))]


def compare_groups(
    space: ValidSpace, trials: Iterable[Trial], measurements: Mapping[str, Measurement], objective: Objective
) -> tuple[Group, ...]:
    """The groups of a space, best first, by the last round's measurements, which have content keys."""
    groups = []
    for name, group in _members(space, trials).items():
        timed = [measurements[trial.key] for trial in group if trial.key in measurements]
        best = min(timed, key=lambda measurement: measurement.score(objective) or math.inf, default=None)
        groups.append(Group(name, len(group), best))
    return tuple(sorted(groups, key=lambda group: (group.best and group.best.score(objective)) or math.inf))


def verdict(groups: tuple[Group, ...], objective: Objective) -> str:
    """Say which group wins and by how much; empty unless two of them have a time."""
    timed = [(group.name, group.best) for group in groups if group.best and group.best.score(objective)]
    if len(timed) < 2:
        return ""
    (name, first), (_, second) = timed[:2]
    if indistinguishable(first, second, objective):
        return "no difference beyond the noise"
    ratio = (second.score(objective) or math.inf) / (first.score(objective) or math.inf)
    if ratio < 1.005:
        return f"{name} wins by less than 0.5%"
    how = "fast" if objective is Objective.TIME else "good"
    return f"{name} wins, {ratio:.2f} times as {how} as the next"


def _members(space: ValidSpace, trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    """The trials of each group, by its name, in the order of the space file."""
    conditions = {name: parse(text) for name, text in space.spec.contrast.items()}
    members: dict[str, list[Trial]] = {name: [] for name in conditions}
    if not conditions:
        return members
    for trial in trials:
        values = space.values(trial.config)
        for name, condition in conditions.items():
            if condition.holds(values):
                members[name].append(trial)
    return members
