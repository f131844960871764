"""Trials as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from autotune.report.tables import table
from autotune.trials import Trial


def trials_table(trials: Sequence[Trial]) -> Table:
    """Trials with one column per parameter, and what their binaries take where that is known."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.config))
    resources = ("registers", "spill_bytes") if any(trial.registers for trial in trials) else ()
    energies = any(trial.measurement and trial.measurement.energy_j is not None for trial in trials)
    rows = [
        (
            f"{trial.time_ms:.4g}" if trial.time_ms is not None else "-",
            *([_energy(trial)] if energies else []),
            trial.status.value,
            *(str(trial.config.get(name, "")) for name in names),
            *(_known(getattr(trial, name)) for name in resources),
            trial.detail.splitlines()[0] if trial.detail else "",
        )
        for trial in trials
    ]
    titles = (name.removesuffix("_bytes") for name in resources)
    return table(("ms", *(["J"] if energies else []), "status", *names, *titles, "detail"), rows)


def _energy(trial: Trial) -> str:
    energy_j = trial.measurement.energy_j if trial.measurement else None
    return "-" if energy_j is None else f"{energy_j:.4g}"


def _known(value: int | None) -> str:
    return "-" if value is None else str(value)
