"""Time the landmarks of a space, the named steps of its ladder, beside the tuned best.

Where the notes of landmarks quote figures of a source, such as `7.02 ms (GTX 1060)`, a second table has them
beside those of this device.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from autotune.cli import options as opt
from autotune.cli.device_use import COLUMNS, NO_USE, use_of
from autotune.cli.output import emit
from autotune.cli.tables import UNKNOWN, cell, console, known_columns, problem_text, rate_text, table
from autotune.core.records import Config
from autotune.core.trials import Budget, Status, Trial
from autotune.errors import InputError
from autotune.evaluation.instance import work
from autotune.report.figures import Bar, bar_chart, save
from autotune.report.source_figures import source_figures
from autotune.space import Space
from autotune.tuning.single_runs import TUNED

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
    from autotune.tuning.served import tuned_best
    from autotune.tuning.single_runs import ladder

    with opt.opened_task(parsed) as (task, progress):
        best = tuned_best(task, parsed.cache)  # first, so that a damaged cache costs no time
        steps = ladder(task, opt.run_options(parsed, budget=Budget()), progress, best)
    figures = {one.name: source_figures(one.note) for one in task.spec.landmarks}
    if parsed.json:
        emit(
            [
                {
                    **{"step": name, "time_ms": trial.time_ms, "status": trial.status.value},
                    "detail": trial.detail,
                    "sources": [
                        {"value": value, "unit": unit, "device": device}
                        for value, unit, device in figures.get(name, ())
                    ],
                }
                for name, trial in steps
            ]
        )
    else:
        out = console()
        out.print(ladder_table(task.space, steps))
        if any(figures.values()):
            out.print()
            out.print(sources_table(task.space, steps, figures))
    if parsed.plot is not None:
        save(ladder_plot(task.space, steps), parsed.plot)


def ladder_table(space: Space, steps: Sequence[tuple[str, Trial]]) -> Table:
    """Make a table with a row per step: time, rate, speed-up over the first step that ran."""
    notes = {landmark.name: landmark.note for landmark in space.spec.landmarks}
    first_ms = next((trial.time_ms for _, trial in steps if trial.time_ms is not None), None)
    rows = []
    for name, trial in steps:
        use = NO_USE if trial.time_ms is None else use_of(space, trial)
        figures = [text or UNKNOWN for text in use]
        if trial.time_ms is None:
            rows.append((name, UNKNOWN, UNKNOWN, UNKNOWN, *figures, _why_not(trial)))
        else:
            note = notes.get(name, str(trial.config))
            rows.append((name, *_row(space, trial.config, trial.time_ms, first_ms), *figures, note))
    columns = ("step", "ms", "rate", "speed-up", *COLUMNS, "note")
    return table(*known_columns(columns, rows, COLUMNS))


def sources_table(
    space: Space, steps: Sequence[tuple[str, Trial]], figures: Mapping[str, Sequence[tuple[float, str, str]]]
) -> Table:
    """Make a table of the sources' figures beside this device's, each in one unit.

    Beside every figure is its factor: how much faster the step is than the last one above it that has a
    figure in the same column.
    """
    rows = [(name, trial) for name, trial in steps if figures.get(name)]
    sources = dict.fromkeys((device, unit) for name, _ in rows for _, unit, device in figures[name])
    columns: list[tuple[str, list[str]]] = [("step", [name for name, _ in rows])]
    for device, unit in sources:
        found = [
            next((value for value, *key in figures[name] if key == [unit, device]), None) for name, _ in rows
        ]
        columns += [(f"{device}, {unit}", _figures(found)), ("factor", _factors(found, unit))]
    for unit in dict.fromkeys(unit for _, unit in sources):
        ours = [_own_figure(space, trial, unit) for _, trial in rows]
        columns += [(f"here, {unit}", _figures(ours)), ("factor", _factors(ours, unit))]
    return table([name for name, _ in columns], list(zip(*(cells for _, cells in columns), strict=True)))


def _own_figure(space: Space, trial: Trial, unit: str) -> float | None:
    """A trial's time or rate in the unit of a source; None if it failed, or the space states no such work."""
    if trial.time_ms is None or unit == "ms":
        return trial.time_ms
    amount = work(space, trial.config, space.problem.sizes).get({"GB/s": "bytes"}.get(unit, "flops"))
    return None if amount is None else amount / trial.time_ms * 1e-6


def _figures(values: Sequence[float | None]) -> list[str]:
    return [cell(value, "{:,.4g}") for value in values]


def _factors(values: Sequence[float | None], unit: str) -> list[str]:
    """How much faster each figure is than the last one before it."""
    faster: Callable[[float, float], float] = (
        (lambda before, now: before / now) if unit == "ms" else (lambda before, now: now / before)
    )
    before: float | None = None
    cells = []
    for value in values:
        cells.append(cell(None if value is None or before is None else faster(before, value), "{:.2f}"))
        before = before if value is None else value
    return cells


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
    return str(trial.failure)
