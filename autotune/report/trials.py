"""Trials as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from autotune.report.tables import table
from autotune.trials import Trial


def trials_table(trials: Sequence[Trial]) -> Table:
    """Trials with one column per parameter."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.config))
    rows = [
        (
            f"{trial.time_ms:.4g}" if trial.time_ms is not None else "-",
            trial.status.value,
            *(str(trial.config.get(name, "")) for name in names),
            trial.detail.splitlines()[0] if trial.detail else "",
        )
        for trial in trials
    ]
    return table(("ms", "status", *names, "detail"), rows)
