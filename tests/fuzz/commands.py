"""A command in this process, and what it may never do whatever its input is."""

import contextlib
import io

from autotune.cli import main
from autotune.core.escapes import terminal_text


def run_command(*arguments: str) -> None:
    """Run a command; what it raises is a finding, and so are a code that is none of ours and an escape."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # as strict as a terminal
    errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(arguments)
    said = "".join(_text(stream) for stream in (out, errors))
    if code not in (0, 1, 2):
        raise AssertionError(f"{arguments}: exit code {code}")
    if said != terminal_text(said):
        raise AssertionError(f"{arguments}: control characters in {said!r}")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
