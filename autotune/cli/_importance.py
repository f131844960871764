"""Importance of parameters as a table, and as JSON values."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from autotune.analysis.importance import Importance
from autotune.cli._tables import table

MIN_SHARE = 0.01  # of a pair that is worth a row
POOR_FIT = 0.5


def importance_table(found: Importance) -> Table:
    """A row for each parameter, and one for each pair that matters."""
    rows = [(name, f"{share:.1%}") for name, share in found.single.items()]
    rows += [
        (f"{one} x {other}", f"{share:.1%}")
        for (one, other), share in found.pairs.items()
        if share >= MIN_SHARE
    ]
    return table(("parameter", "share of the variance of log time"), rows)


def importance_note(found: Importance) -> str:
    """How far the table can be trusted."""
    doubt = "; that is poor: try more configurations" if found.fit < POOR_FIT else ""
    return f"from {found.trials} trials; the model explains {found.fit:.0%} of what it has not seen{doubt}"


def importance_json(found: Importance) -> dict[str, Any]:
    """All shares, small ones too."""
    return {
        "trials": found.trials,
        "fit": found.fit,
        "parameters": dict(found.single),
        "pairs": [{"parameters": list(pair), "share": share} for pair, share in found.pairs.items()],
    }
