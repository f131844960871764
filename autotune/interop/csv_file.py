"""Trials as CSV, for spreadsheets and data frames: a row each, a column for each parameter."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from autotune.core.escapes import csv_text
from autotune.core.trials import Trial

_MEASURED = ("compile_ms", "cost_s", "registers", "spill_bytes", "shared_bytes")


def trials_csv(rows: Sequence[tuple[Path, Trial]]) -> str:
    """The trials with their journals as CSV with a header line; what is unknown is empty."""
    names = list(dict.fromkeys(name for _, trial in rows for name in trial.config))
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["journal", *names, "status", "time_ms", "energy_j", "samples", *_MEASURED, "detail"])
    for journal, trial in rows:
        measurement = trial.measurement
        cells = (
            str(journal),
            *(trial.config.get(name) for name in names),
            trial.status.value,
            trial.time_ms,
            measurement.energy_j if measurement else None,
            len(measurement.samples_ms) if measurement else 0,
            *(getattr(trial, name) for name in _MEASURED),
            trial.detail,
        )
        writer.writerow(csv_text(cell) if isinstance(cell, str) else cell for cell in cells)
    return text.getvalue()
