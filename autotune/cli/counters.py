"""The counters of runs: the option that asks for them, a table of several runs, and a line of one."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from autotune.cli.tables import Table, cell, table

if TYPE_CHECKING:
    from autotune.core.trials import Trial
    from autotune.diagnosis.counted_runs import CountedRun
    from autotune.tuning.observer import Observer
    from autotune.tuning.options import Options
    from autotune.tuning.task import TuningTask

_STYLE = "{:,.4g}"


def add_counters(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--counters",
        action="store_true",
        help="run each configuration once more and count: active threads, sectors, bank conflicts, and where "
        "Nsight Compute may count, waits at barriers, issue slots and occupancy",
    )


def counted_runs_of(
    parsed: argparse.Namespace,
    task: TuningTask,
    options: Options,
    observer: Observer,
    trials: Mapping[str, Trial],
) -> dict[str, CountedRun]:
    """The counters of trials by name; empty if nobody asked for them."""
    if not parsed.counters:
        return {}
    from autotune.diagnosis.counted_runs import counted_runs

    return counted_runs(task, options, observer, trials)


def counters_table(runs: Mapping[str, CountedRun]) -> Table:
    """Make a table with a row for each run."""
    rows = [(name, *(cell(value, _STYLE) for value in run.values())) for name, run in runs.items()]
    return table(("step", *next(iter(runs.values()))), rows)


def counters_text(run: CountedRun) -> str:
    """The counters of a run on one line."""
    return f"counters   {', '.join(f'{name} {cell(value, _STYLE)}' for name, value in run.items())}"
