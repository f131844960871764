"""Print a command's result."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from typing import Any

from autotune.cli.tables import Table, shown_table
from autotune.core.escapes import terminal_text


def emit(*results: Any) -> None:
    """Print texts and tables, and anything else as JSON."""
    for result in results:
        if isinstance(result, Table):
            print(shown_table(result))
        else:
            print(
                terminal_text(result)
                if isinstance(result, str)
                else json.dumps(result, indent=2, default=str)
            )


def say(text: str) -> None:
    """Print a text on stderr, apart from the result."""
    print(terminal_text(text), file=sys.stderr, flush=True)


def wrapped(text: str, indent: int = 8) -> str:
    """On a terminal, break long lines between words and indent the rest; elsewhere change nothing."""
    if not sys.stdout.isatty():
        return text
    width = max(40, shutil.get_terminal_size().columns)
    return "\n".join(
        textwrap.fill(
            line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
        )
        for line in text.splitlines()
    )
