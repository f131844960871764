"""The look of tables, and the console that prints them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autotune.core.escapes import terminal_text
from autotune.core.text import ratio_text

UNKNOWN = "-"  # in a cell
_NOT_KNOWN = ("", UNKNOWN)
_PLAIN_WIDTH = 200  # characters of a line in a file or a pipe


class _Console(Console):
    """A console for texts of any origin, which raises BrokenPipeError when its reader is gone."""

    def render_str(self, text: str, **settings: Any) -> Text:
        """As rich does, for all printed texts and cells; styles are given separately."""
        return super().render_str(terminal_text(text), **settings)

    def on_broken_pipe(self) -> None:
        """Raise the error that is being handled."""
        raise


def console() -> Console:
    """The console for results, with colours on a terminal and plain text elsewhere."""
    plain = not sys.stdout.isatty()
    return _Console(
        markup=False, highlight=False, soft_wrap=True, no_color=plain, width=_PLAIN_WIDTH if plain else None
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], optional: Collection[str] = ()) -> Table:
    """Make a table without lines; columns of numbers are aligned to the right.

    Args:
        columns: A title for each.
        rows: A cell for each column.
        optional: Columns to leave out if they have no known cell.
    """
    drawn, cells = Table(box=None, pad_edge=False, header_style="bold"), list(rows)
    shown = [
        place
        for place, column in enumerate(columns)
        if column not in optional or any(row[place] not in _NOT_KNOWN for row in cells)
    ]
    for place in shown:
        texts = [row[place] for row in cells if row[place] not in _NOT_KNOWN]
        numeric = bool(texts) and all(text.lstrip("+-<>")[:1].isdigit() for text in texts)
        drawn.add_column(columns[place], justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*(row[place] for place in shown))
    return drawn


def ratio_cell(ratio: float | None) -> str:
    """The ratio of two numbers as a cell, which may be unknown."""
    return UNKNOWN if ratio is None else ratio_text(ratio)


def cell(value: float | None, style: str = "{:.4g}") -> str:
    """A number as a cell, which may be unknown."""
    return UNKNOWN if value is None else style.format(value)
