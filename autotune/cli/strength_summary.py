"""The strength of a space as text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from math import floor

from autotune.cli.tables import Table, table
from autotune.core.text import count_text
from autotune.strength.record import CAUGHT, EQUIVALENT, MISSED, Planted, Strength


def strength_text(strength: Strength) -> tuple[str | Table, ...]:
    """The score, the kinds, and each missed mistake under what would show it."""
    caught, missed = strength.of(CAUGHT), strength.of(MISSED)
    score = "" if strength.score is None else f" ({floor(100 * strength.score)}%)"
    head = [f"caught {len(caught)} of {count_text(len(caught) + len(missed), 'planted mistake')}{score}"]
    if strength.left:
        head.append(f"no time was left for {count_text(strength.left, 'mistake')}: raise --time")
    verdicts = (CAUGHT, MISSED, EQUIVALENT)
    rows = [
        (kind, *(str(len(strength.of(verdict, kind))) for verdict in verdicts))
        for kind in sorted(strength.kinds, key=lambda kind: -len(strength.of(MISSED, kind)))
    ]
    by_mend = groupby(sorted(missed, key=lambda mistake: mistake.mend), lambda mistake: mistake.mend)
    lists = [line for mend, several in by_mend for line in _mistake_lines(f"missed: {mend}", list(several))]
    lists += _mistake_lines("nothing shows these mistakes", strength.of(EQUIVALENT))
    return (*head, table(("mistake", *verdicts), rows), *lists)


def _mistake_lines(title: str, planted: list[Planted]) -> Iterator[str]:
    if planted:
        yield f"\n{title}"
        for mistake in planted:
            yield f"  {mistake.kind} at {mistake.place}\n    {mistake.was}\n    {mistake.now}"
