"""Importance of parameters as a table, and as JSON values."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from autotune.analysis.importance import Importance
from autotune.cli._tables import table

MIN_SHARE = 0.01  # pairs with a smaller share get no row
POOR_FIT = 0.5  # share of explained variance below which the table says so


def importance_table(found: Importance) -> Table:
    """Make a table with a row for each parameter and each pair that matters."""
    rows = [(name, f"{share:.1%}") for name, share in found.single.items()]
    rows += [
        (f"{one} x {other}", f"{share:.1%}")
        for (one, other), share in found.pairs.items()
        if share >= MIN_SHARE
    ]
    return table(("parameter", "share of the variance of log time"), rows)


def importance_note(found: Importance) -> str:
    """Say how far the table can be trusted."""
    doubt = "; that is poor: try more configurations" if found.fit < POOR_FIT else ""
    fit = f"the model explains {found.fit:.0%} of the variance of unseen trials"
    return f"from {found.trials} trials; {fit}{doubt}"


def importance_json(found: Importance) -> dict[str, Any]:
    """The importance as JSON values, with all shares."""
    return {
        "trials": found.trials,
        "fit": found.fit,
        "parameters": dict(found.single),
        "pairs": [{"parameters": list(pair), "share": share} for pair, share in found.pairs.items()],
    }
