"""The command line: a module for each command calls a function of a lower layer and prints.

A command's module has its description as its docstring, and EXAMPLE, `add_options` and `run`.
Exit codes: 0 done, 1 it failed, 2 the input was wrong and nothing was written, 128 and a signal's number
interrupted by it, so 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from autotune.cli.output import say
from autotune.cli.parsing import complete_words, parse, parser, present_words
from autotune.core.extras import missing_extra
from autotune.errors import AutotuneError, InputError

# Commands, and options that make a command another one.
_SHOWING_PROGRESS = {"check", "diagnose", "new", "run", "search", "versus", "--compile"}
_RESUMING = {"search", "--landmarks", "--compile"}  # the same command resumes these
_HELP = {"-h", "--help"}
_QUIET = {"-q", "--quiet", *_HELP}
_COMPLETION = "_ARGCOMPLETE"  # set by the shell's completion
_INTERPRET = "TRITON_INTERPRET"  # Triton then makes functions of numpy, of which there are no binaries


_ENDING = {  # signals that end a command, with Python's own reaction
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,  # the terminal is closed
}
_interrupts: list[int] = []  # signals received since the command began


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    warnings.showwarning = _show_warning
    _interrupts.clear()
    for number, usual in _ENDING.items():
        if signal.getsignal(number) is usual:  # else it is ignored, after nohup for example
            signal.signal(number, _interrupt)
    _open_closed_streams()
    if isinstance(sys.stdout, TextIOWrapper):  # for names that the terminal's encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    words = present_words(sys.argv[1:] if arguments is None else arguments)
    try:
        _compile_always()
        _require_folder()
        if _COMPLETION in os.environ:
            complete_words()
        if not words:
            parser(()).print_help()
            return 0
        _say_starting(words)
        _start_early(words)
        parsed = parse(words)
        parsed.run(parsed)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _interrupted(words)
    except (AutotuneError, ImportError, OSError) as error:
        return _interrupted(words) if _interrupts else _failed(error)  # what an interrupt breaks off may fail
    return 0


def _interrupted(words: Sequence[str]) -> int:
    resumes = bool(words) and not _RESUMING.isdisjoint(_kind(words))
    how = "the same command without --fresh" if "--fresh" in words else "the same command"
    code = 128 + (_interrupts[0] if _interrupts else signal.SIGINT)
    return _fail(f"interrupted; {how} resumes" if resumes else "interrupted", code)


def _failed(error: Exception) -> int:
    """Say why a command failed, and return its exit code; raises what is a fault of autotune."""
    match error:
        case InputError():
            return _fail(" ".join(str(error).split()), 2)
        case AutotuneError():
            return _fail(str(error), 1)
        case ModuleNotFoundError() if extra := missing_extra(error):
            return _fail(str(extra), 1)
        case BrokenPipeError():  # the reader of the output, such as `head`, has finished
            _drop_output()
            return 0
        case OSError():  # such as a full disk
            _drop_output()
            return _fail(": ".join(map(str, filter(None, (error.filename, error.strerror or error)))), 1)
    raise error


def _kind(words: Sequence[str]) -> set[str]:
    """The command's name and its options; what follows `--` is of another program."""
    return {words[0], *(word for word in takewhile("--".__ne__, words) if word.startswith("-"))}


def _say_starting(words: Sequence[str]) -> None:
    """On a terminal, say at once that a long command starts; progress replaces the line."""
    is_shown = not _SHOWING_PROGRESS.isdisjoint(_kind(words)) and _QUIET.isdisjoint(words)
    if is_shown and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        print("starting", end="\r", file=sys.stderr, flush=True)


def _start_early(words: Sequence[str]) -> None:
    """For a command with processes, start the fork server while the command is being imported."""
    if not _SHOWING_PROGRESS.isdisjoint(_kind(words)) and _HELP.isdisjoint(words):
        from autotune.processes.fork_server import preload

        # what the first process of a command needs
        preload(("autotune.drafting.draft_steps",) if words[0] == "new" else ("autotune.devices",))


def _open_closed_streams() -> None:
    """Reopen streams that the caller closed: no journal may get their file descriptors."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - lives as long as the process


def _compile_always() -> None:
    """Leave Triton's interpreter to programs: commands, and the processes that they start, compile."""
    if os.environ.pop(_INTERPRET, "0").lower() not in ("", "0", "false", "no", "off"):
        warnings.warn(
            f"{_INTERPRET} is ignored; to interpret kernels, give --device interpreter", stacklevel=2
        )


def _require_folder() -> None:
    try:
        Path.cwd()
    except OSError as error:
        raise InputError(f"the current folder cannot be used: {error.strerror}; change to another") from None


def _drop_output() -> None:
    """Discard unwritten output: the interpreter would try again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(text: str, code: int) -> int:
    with suppress(OSError):  # the terminal may be gone
        say(f"autotune: {text}")
    return code


def _interrupt(number: int, _: Any) -> NoReturn:
    """Raise KeyboardInterrupt, which cleans up child processes and temporary files, and record the signal.

    Numpy turns it into an ImportError while being imported. A closed terminal and its shell both send SIGHUP,
    so a second one does not interrupt the clean-up.
    """
    _interrupts.append(number)
    if number != signal.SIGINT:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"warning: {message}")
