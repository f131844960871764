"""What to write instead of a name that nobody knows."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message, such as `; did you mean BLOCK_SIZE?`; empty where no known name is near."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def hint(name: str, known: Iterable[str]) -> str:
    """The nearest known name, or else all of them, as the end of a message."""
    words = sorted(known)
    return nearest(name, words) or f"; expected one of: {', '.join(words)}"


_IGNORED = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)


_IGNORED_IN_PYTHON = re.compile(
    r"""#[^\n]*|\"\"\".*?\"\"\"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)


def bare_code(text: str, *, is_python: bool = False) -> str:
    """A source on unbroken lines, without comments and strings."""
    return (_IGNORED_IN_PYTHON if is_python else _IGNORED).sub(" ", text.replace("\\\n", " "))
