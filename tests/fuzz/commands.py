"""A command in this process, and what it may never do whatever its input is."""

import contextlib
import io
import re

from autotune.cli import main

# What a terminal obeys: controls but line breaks and tabs, and the direction of text.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def run_command(*arguments: str) -> None:
    """Run a command; what it raises is a finding, and so are a code that is none of ours and an escape."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # as strict as a terminal
    errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(arguments)
    said = "".join(_text(stream) for stream in (out, errors))
    if code not in (0, 1, 2):
        raise AssertionError(f"{arguments}: exit code {code}")
    if _OBEYED.search(said):
        raise AssertionError(f"{arguments}: control characters in {said!r}")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
