"""Scores of replayed searches as a table, and as JSON values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, median
from typing import Any

from rich.table import Table

from autotune.efficiency import CHECKPOINTS, MARGINS, Efficiency
from autotune.report.tables import table

COLUMNS = (
    "searcher",
    "space",
    "P",
    "P400",
    *(f"best@{count}" for count in CHECKPOINTS),
    *(f"to {margin}%" for margin in MARGINS),
    "thinking ms",
)


def efficiency_table(scores: Sequence[tuple[str, Efficiency]]) -> Table:
    """One row for each searcher and space, and one with its means after a searcher's last space."""
    return table(COLUMNS, efficiency_rows(scores))


def efficiency_rows(scores: Sequence[tuple[str, Efficiency]]) -> list[tuple[str, ...]]:
    """The table's cells; `to N%` in the row of means is the median over the spaces, - when there is none."""
    rows: list[tuple[str, ...]] = []
    for searcher in dict.fromkeys(name for name, _ in scores):
        own = [score for name, score in scores if name == searcher]
        rows += [_row(searcher, score) for score in own]
        if len(own) > 1:
            rows.append(_row(searcher, _mean(own)))
    return rows


def efficiency_json(searcher: str, score: Efficiency) -> dict[str, Any]:
    """A score as JSON values; what is not a number is null."""
    return {
        "searcher": searcher,
        "space": score.space,
        "seeds": score.runs,
        "p": _finite(score.p),
        "p400": _finite(score.p400),
        "found": {str(count): value for count, value in score.found.items()},
        "evaluations_to_percent": {str(margin): value for margin, value in score.needed.items()},
        "evaluations": score.evaluations,
        "thinking_ms": score.thinking_ms,
    }


def _mean(scores: Sequence[Efficiency]) -> Efficiency:
    needed = {margin: median(score.needed[margin] or math.inf for score in scores) for margin in MARGINS}
    return Efficiency(
        space="mean",
        runs=scores[0].runs,
        p=mean(score.p for score in scores),
        p400=mean(score.p400 for score in scores),
        found={
            count: mean(score.found[count] for score in scores)
            for count in CHECKPOINTS
            if all(count in score.found for score in scores)
        },
        needed={margin: value if math.isfinite(value) else None for margin, value in needed.items()},
        evaluations=mean(score.evaluations for score in scores),
        thinking_ms=mean(score.thinking_ms for score in scores),
    )


def _row(searcher: str, score: Efficiency) -> tuple[str, ...]:
    return (
        searcher,
        score.space,
        f"{score.p:.2f}",
        f"{score.p400:.2f}",
        *(f"{score.found[count]:.2f}" if count in score.found else "-" for count in CHECKPOINTS),
        *("-" if value is None else f"{value:,.0f}" for value in score.needed.values()),
        f"{score.thinking_ms:.1f}",
    )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
