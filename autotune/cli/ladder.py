"""Time the landmarks of a space, the named steps of its ladder, beside the tuned best."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from autotune.cli import options as opt
from autotune.cli._device_use import COLUMNS, use_of, used_columns
from autotune.cli._tables import problem_text, rate_text, table
from autotune.cli.output import emit
from autotune.core.records import Config
from autotune.core.trials import Budget, Status, Trial
from autotune.errors import InputError
from autotune.report.figures import Bar, bar_chart, save
from autotune.space import Space
from autotune.tuning.tuner import TUNED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLE = "autotune ladder spaces/reduce.yaml"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `autotune ladder`."""
    opt.add_target(parser)
    opt.add_run(parser)
    opt.add_cache(parser, "where to look for the tuned best")
    opt.add_plot(parser, "also draw the times as a bar chart")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Verify and time the landmarks, and print a table."""
    from autotune.cli._tables import console
    from autotune.tuning.task import tuned_best
    from autotune.tuning.tuner import ladder

    with opt.opened_task(parsed) as (task, progress):
        best = tuned_best(task, parsed.cache)  # first, so that a damaged cache costs no time
        steps = ladder(task, opt.run_options(parsed, budget=Budget()), progress, best)
    if parsed.json:
        emit(
            [
                {"step": name, "time_ms": trial.time_ms, "status": trial.status.value, "detail": trial.detail}
                for name, trial in steps
            ]
        )
    else:
        console().print(ladder_table(task.space, steps))
    if parsed.plot is not None:
        save(ladder_plot(task.space, steps), parsed.plot)


def ladder_table(space: Space, steps: Sequence[tuple[str, Trial]]) -> Table:
    """Make a table with a row per step: time, rate, speed-up over the first step that ran."""
    notes = {landmark.name: landmark.note for landmark in space.spec.landmarks}
    first_ms = next((trial.time_ms for _, trial in steps if trial.time_ms is not None), None)
    uses = [use_of(space, trial) if trial.time_ms is not None else ("", "", "") for _, trial in steps]
    shown = used_columns(uses)
    rows = []
    for (name, trial), use in zip(steps, uses, strict=True):
        figures = tuple(use[place] or "-" for place in shown)
        if trial.time_ms is None:
            rows.append((name, "-", "-", "-", *figures, _why_not(trial)))
        else:
            note = notes.get(name, str(trial.config))
            rows.append((name, *_row(space, trial.config, trial.time_ms, first_ms), *figures, note))
    return table(("step", "ms", "rate", "speed-up", *(COLUMNS[place] for place in shown), "note"), rows)


def ladder_plot(space: Space, steps: Sequence[tuple[str, Trial]]) -> Figure:
    """Draw the time of each step that ran as a bar chart; raises InputError if none ran."""
    timed = [(name, trial.config, trial.time_ms) for name, trial in steps if trial.time_ms is not None]
    if not timed:
        raise InputError(f"{space.spec.kernel}: no landmark ran on this device, so there is nothing to plot")
    bars = [
        Bar(name, time_ms, _time_and_rate(space, config, time_ms), strong=name == TUNED)
        for name, config, time_ms in timed
    ]
    return bar_chart(f"{space.spec.kernel}, {problem_text(space)}, {space.device.name}", "ms", bars)


def _time_and_rate(space: Space, config: Config, time_ms: float) -> str:
    return ", ".join(filter(None, (f"{time_ms:.4g} ms", rate_text(space, config, time_ms))))


def _row(space: Space, config: Config, time_ms: float, first_ms: float | None) -> tuple[str, str, str]:
    return f"{time_ms:.4g}", rate_text(space, config, time_ms), f"{(first_ms or time_ms) / time_ms:.1f}x"


def _why_not(trial: Trial) -> str:
    if trial.status is Status.PRUNED:
        return f"not valid here: {trial.detail}"
    return f"{trial.status.value}: {trial.detail}"
