"""Which configurations are best where two things count: those that no other beats in both."""

from __future__ import annotations

from collections.abc import Iterable

from autotune.model import Front
from autotune.trials import Trial


def pareto_front(trials: Iterable[Trial]) -> Front:
    """Configurations with time and energy of a run, fastest first, that none is faster and thriftier than."""
    measured = [
        (trial.config, trial.time_ms, trial.measurement.energy_j)
        for trial in trials
        if trial.time_ms is not None and trial.measurement and trial.measurement.energy_j is not None
    ]
    front: list[tuple[object, float, float]] = []
    for row in sorted(measured, key=lambda row: (row[1], row[2])):
        if not front or row[2] < front[-1][2]:
            front.append(row)
    return tuple(front)  # type: ignore[arg-type]
