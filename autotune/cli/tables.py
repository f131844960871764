"""How output looks: the console, tables, rates and problems."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

from rich.console import Console
from rich.table import Table

from autotune.core.records import Config
from autotune.core.text import per_second, table_sizes
from autotune.evaluation.instance import work
from autotune.space import Space
from autotune.space.spec import DTYPES

UNKNOWN = "-"  # in a cell
_NOT_KNOWN = ("", UNKNOWN)
_PLAIN_WIDTH = 200  # characters of a line in a file or a pipe


class _Console(Console):
    """A console that raises BrokenPipeError when its reader is gone."""

    def on_broken_pipe(self) -> None:
        """Raise the error that is being handled."""
        raise


def console() -> Console:
    """The console for results, with colours on a terminal and plain text elsewhere."""
    plain = not sys.stdout.isatty()
    return _Console(
        markup=False, highlight=False, soft_wrap=True, no_color=plain, width=_PLAIN_WIDTH if plain else None
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Make a table without lines; columns of numbers are aligned to the right."""
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    cells = list(rows)
    for position, column in enumerate(columns):
        texts = [row[position] for row in cells if row[position] not in _NOT_KNOWN]
        numeric = bool(texts) and all(text[0].isdigit() for text in texts)
        drawn.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*row)
    return drawn


def known_columns(
    columns: Sequence[str], rows: Sequence[Sequence[str]], optional: Collection[str]
) -> tuple[list[str], list[list[str]]]:
    """The columns and rows of a table without those `optional` columns that have no known cell."""
    shown = [
        place
        for place, column in enumerate(columns)
        if column not in optional or any(row[place] not in _NOT_KNOWN for row in rows)
    ]
    return [columns[place] for place in shown], [[row[place] for place in shown] for row in rows]


def cell(value: float | None, style: str = "{:.4g}") -> str:
    """A number as a cell of a table, which may be unknown."""
    return UNKNOWN if value is None else style.format(value)


def problem_text(space: Space) -> str:
    """A problem as text: `n=4,194,304, int32`, without the type if the space names none."""
    problem, spec = space.problem, space.spec
    is_typed = spec.dtypes != DTYPES or any(item.dtype == "DTYPE" for item in spec.arguments)
    dtype = problem.dtype if is_typed else ""
    data = f"{problem.data} data" if problem.data else ""
    return ", ".join(filter(None, (table_sizes(problem.sizes), dtype, data)))


def rate_text(space: Space, config: Config, time_ms: float) -> str:
    """The rates that a time means, if the space states its work: `13.6 GB/s, 3.4 GFLOP/s`."""
    done = work(space, config, space.problem.sizes)
    units = {"bytes": "B/s", "flops": "FLOP/s"}
    return ", ".join(per_second(amount / time_ms * 1e3, units[name]) for name, amount in done.items())
