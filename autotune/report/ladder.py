"""The landmarks of a space as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from autotune.model import Config
from autotune.report.tables import rate_text, table
from autotune.space import Space
from autotune.trials import Status, Trial


def ladder_table(
    space: Space, rungs: Sequence[tuple[str, Trial]], best: tuple[Config, float] | None
) -> Table:
    """One row per landmark: time, rate, speed-up over the first that ran; the tuned best in the end."""
    notes = {landmark.name: landmark.note for landmark in space.spec.landmarks}
    first_ms = next((trial.time_ms for _, trial in rungs if trial.time_ms is not None), None)
    rows = []
    for name, trial in rungs:
        if trial.time_ms is None:
            rows.append((name, "-", "-", "-", f"{_why_not(trial)}"))
        else:
            rows.append((name, *_rung(space, trial.config, trial.time_ms, first_ms), notes[name]))
    if best is not None:
        rows.append(("tuned best", *_rung(space, best[0], best[1], first_ms), str(best[0])))
    return table(("step", "ms", "rate", "speed-up", "note"), rows)


def _rung(space: Space, config: Config, time_ms: float, first_ms: float | None) -> tuple[str, str, str]:
    return f"{time_ms:.4g}", rate_text(space, config, time_ms), f"{(first_ms or time_ms) / time_ms:.1f}x"


def _why_not(trial: Trial) -> str:
    if trial.status is Status.PRUNED:
        return f"not valid here: {trial.detail}"
    return f"{trial.status.value}: {trial.detail}"
