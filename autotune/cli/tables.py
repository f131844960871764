"""Tables that fit the terminal: without constant columns; wide ones wrap, or become blocks of lines."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from autotune.core.escapes import terminal_text
from autotune.core.text import ratio_text

UNKNOWN = "-"  # in a cell
_NOT_KNOWN = ("", UNKNOWN)
_PLAIN_WIDTH = 200  # characters of a line in a file or a pipe
_GAP = "  "
_LEAST = 8  # characters of a column that wraps


@dataclass(frozen=True)
class Table:
    """A table of texts: the titles of its columns, and rows with a cell for each."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""  # a line above, which is shown even without rows

    def drawn(self, width: int, *, is_terminal: bool = False) -> str:
        """The table in lines of at most `width` characters, if its words permit.

        On a terminal, titles are bold, and constant columns of several rows become one line.
        """
        strong = "\x1b[1m{}\x1b[0m" if is_terminal and "NO_COLOR" not in os.environ else "{}"
        head = [strong.format(self.title)] if self.title else []
        if not self.rows:
            return "\n".join(head)
        is_short = is_terminal and len(self.rows) > 2  # two rows may be alike by chance
        shown = self._without_constants() if is_short or _total(self._longest()) > width else self
        row = zip(self.columns, self.rows[0], strict=True)
        same = [
            f"{name} {text}" for name, text in row if name not in shown.columns and text not in _NOT_KNOWN
        ]
        notes = textwrap.wrap(f"in all rows: {', '.join(same)}", width) if same else []
        widths = shown._widths(width)
        if _total(widths) > width:
            return "\n".join([*head, *shown._blocks(width, strong), *notes])
        first, *lines = shown._lines(widths)
        return "\n".join([*head, strong.format(first), *lines, *notes])

    def _columns_of_cells(self) -> list[tuple[str, ...]]:
        return [(name, *(row[place] for row in self.rows)) for place, name in enumerate(self.columns)]

    def _longest(self) -> list[int]:
        """The columns' widths if nothing wraps."""
        return [max(map(len, cells)) for cells in self._columns_of_cells()]

    def _without_constants(self) -> Table:
        """This table without the columns, after the first, whose cells are all the same."""
        kept = [
            place
            for place in range(len(self.columns))
            if place == 0 or not self.columns[place] or len({row[place] for row in self.rows}) > 1
        ]
        if len(self.rows) == 1 or len(kept) == 1:
            return self
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return Table(tuple(self.columns[place] for place in kept), rows)

    def _widths(self, width: int) -> list[int]:
        """The columns' widths: the widest ones are narrowed, each to its longest word or _LEAST at least."""
        columns, widths = self._columns_of_cells(), self._longest()
        least = [
            min(here, max([_LEAST, *map(len, _unbroken(*cells))]))
            for here, cells in zip(widths, columns, strict=True)
        ]
        while _total(widths) > width:
            wide = [(here, place) for place, here in enumerate(widths) if here > least[place]]
            if not wide:
                break
            widths[max(wide)[1]] -= 1
        return [
            max(len(line) for text in cells for line in _wrapped(text, here))
            for here, cells in zip(widths, columns, strict=True)
        ]

    def _lines(self, widths: Sequence[int]) -> Iterable[str]:
        """The lines of titles and rows; columns of numbers are aligned to the right."""
        align = [str.rjust if _is_numeric(cells[1:]) else str.ljust for cells in self._columns_of_cells()]
        for row in (self.columns, *self.rows):
            cells = [_wrapped(text, width) for text, width in zip(row, widths, strict=True)]
            for number in range(max(map(len, cells))):
                parts = [
                    place(lines[number] if number < len(lines) else "", width)
                    for place, lines, width in zip(align, cells, widths, strict=True)
                ]
                yield _GAP.join(parts).rstrip()

    def _blocks(self, width: int, strong: str) -> Iterable[str]:
        """Each row as lines of its own: the first cell, then the others with their titles."""
        for first, *others in self.rows:
            yield strong.format(first)
            named = zip(self.columns[1:], others, strict=True)
            line = "; ".join(f"{name} {text}".lstrip() for name, text in named if text not in _NOT_KNOWN)
            yield from (_GAP + part for part in _wrapped(line, width - len(_GAP)))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _wrapped(text: str, width: int) -> list[str]:
    """The lines of a cell: its own, each broken between words."""
    lines = text.split("\n")
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    return [part for line in lines for part in wrapper.wrap(line) or [""]]


def _unbroken(title: str, *cells: str) -> list[str]:
    """The parts of a column that stay on one line: its words, and its numbers with their units."""
    return [*title.split(), *(cells if _is_numeric(cells) else " ".join(cells).split())]


def _is_numeric(cells: Iterable[str]) -> bool:
    numbers = [text for text in cells if text not in _NOT_KNOWN]
    return bool(numbers) and all(text.lstrip("+-<>")[:1].isdigit() and ", " not in text for text in numbers)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], optional: Collection[str] = (), title: str = ""
) -> Table:
    """Make a table without terminal commands in its texts; `optional` columns need a known cell."""
    cells = [tuple(map(terminal_text, row)) for row in rows]
    shown = [
        place
        for place, column in enumerate(columns)
        if column not in optional or any(row[place] not in _NOT_KNOWN for row in cells)
    ]
    kept = tuple(tuple(row[place] for place in shown) for row in cells)
    return Table(tuple(terminal_text(columns[place]) for place in shown), kept, terminal_text(title))


def shown_table(drawn: Table) -> str:
    """A table as it fits the output: a terminal's width and bold titles, or plain long lines elsewhere."""
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else _PLAIN_WIDTH
    return drawn.drawn(max(width, 40), is_terminal=is_terminal)


def ratio_cell(ratio: float | None) -> str:
    """The ratio of two numbers as a cell, which may be unknown."""
    return UNKNOWN if ratio is None else ratio_text(ratio)


def cell(value: float | None, style: str = "{:.4g}") -> str:
    """A number as a cell, which may be unknown."""
    return UNKNOWN if value is None else style.format(value)
