"""Print a command's result."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import Any, TextIO

from autotune.cli.tables import Table, shown_table
from autotune.core.escapes import terminal_text

_LABEL = re.compile(r" *\S+ {2,}| +")  # before a line's text: a word in a column of its own, or spaces


def emit(*results: Any) -> None:
    """Print texts, tables and what a tuple or an iterator has of them, and anything else as JSON."""
    for result in results:
        if isinstance(result, tuple | Iterator):
            emit(*result)
        elif isinstance(result, Table):
            if shown := shown_table(result):
                print(shown)
        else:
            print(
                _fitted(result, sys.stdout)
                if isinstance(result, str)
                else json.dumps(result, indent=2, default=str)
            )


def say(text: str) -> None:
    """Print a text on stderr, apart from the result."""
    print(_fitted(text, sys.stderr), file=sys.stderr, flush=True)


def _fitted(text: str, stream: TextIO) -> str:
    """On a terminal, break long lines between words, and indent the rest as the text after a label."""
    shown = terminal_text(text)
    if not stream.isatty():
        return shown
    width, indent = max(40, shutil.get_terminal_size().columns), 2
    lines = []
    for line in shown.split("\n"):
        label = _LABEL.match(line)  # a label that fills its column has the indent of those above
        indent = min(label.end(), 2 * width // 3) if label else indent
        wrapper = textwrap.TextWrapper(
            width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
        )
        lines.append(line if len(line) <= width else wrapper.fill(line))
    return "\n".join(lines)
