"""The landmarks of a space as a table and as a plot."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from autotune.errors import InputError
from autotune.model import Config
from autotune.report.plot import Bar, bar_chart
from autotune.report.tables import problem_text, rate_text, table
from autotune.session import TUNED
from autotune.space import Space
from autotune.trials import Status, Trial


def ladder_table(space: Space, rungs: Sequence[tuple[str, Trial]]) -> Table:
    """One row per rung: time, rate, speed-up over the first that ran."""
    notes = {landmark.name: landmark.note for landmark in space.spec.landmarks}
    first_ms = next((trial.time_ms for _, trial in rungs if trial.time_ms is not None), None)
    rows = []
    for name, trial in rungs:
        if trial.time_ms is None:
            rows.append((name, "-", "-", "-", f"{_why_not(trial)}"))
        else:
            note = notes.get(name, str(trial.config))
            rows.append((name, *_rung(space, trial.config, trial.time_ms, first_ms), note))
    return table(("step", "ms", "rate", "speed-up", "note"), rows)


def ladder_plot(space: Space, rungs: Sequence[tuple[str, Trial]]) -> str:
    """A bar of time per rung that ran, as SVG; InputError if none ran."""
    timed = [(name, trial.config, trial.time_ms) for name, trial in rungs if trial.time_ms is not None]
    if not timed:
        raise InputError(f"{space.spec.kernel}: none of its landmarks ran here, so there is nothing to plot")
    bars = [
        Bar(name, time_ms, _time_and_rate(space, config, time_ms), strong=name == TUNED)
        for name, config, time_ms in timed
    ]
    return bar_chart(f"{space.spec.kernel}, {problem_text(space)}, {space.device.name}", "ms", bars)


def _time_and_rate(space: Space, config: Config, time_ms: float) -> str:
    return ", ".join(filter(None, (f"{time_ms:.4g} ms", rate_text(space, config, time_ms))))


def _rung(space: Space, config: Config, time_ms: float, first_ms: float | None) -> tuple[str, str, str]:
    return f"{time_ms:.4g}", rate_text(space, config, time_ms), f"{(first_ms or time_ms) / time_ms:.1f}x"


def _why_not(trial: Trial) -> str:
    if trial.status is Status.PRUNED:
        return f"not valid here: {trial.detail}"
    return f"{trial.status.value}: {trial.detail}"
