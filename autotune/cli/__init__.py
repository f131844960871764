"""The command line: parse, call one function of a lower layer, print. A module for each command.

Each command's module has its description as its docstring, an EXAMPLE, `add_options` and `run`.
Exit codes: 0 done, 1 it failed, 2 the input was wrong and nothing was written, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Collection, Sequence
from importlib import import_module
from io import TextIOWrapper
from keyword import iskeyword
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from autotune import __version__
from autotune.errors import AutotuneError, InputError

# What `autotune --help` says of each command. A module is imported when its command is asked for.
COMMANDS = {
    "search": "tune a kernel: search its space, verify and time, keep the best in the cache",
    "adopt": "get a result from ten runs, where other devices or sizes have one",
    "best": "show what the cache serves for a kernel on a device, as best_config does",
    "compare": "compare what was tuned on several devices",
    "merge": "unite caches and journals of several machines",
    "devices": "list what --device accepts",
    "new": "write a first space file and reference for a kernel",
    "space": "count, explain and check a space; say why a configuration is invalid",
    "feasible": "compile a space for architectures without having them",
    "ladder": "time the named steps of a kernel's ladder beside the tuned best",
    "show": "look through the trials of a search",
    "replay": "search recorded results, at once and scored",
    "import": "read other tools' results and spaces",
    "export": "write a journal in another tool's format, or a kernel's cache as a C header",
}


class _Parser(argparse.ArgumentParser):
    """Reports wrong usage in one line, like every other wrong input; options are written in full."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see `{self.prog} --help`)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    warnings.showwarning = _show_warning
    signal.signal(signal.SIGTERM, _terminate)
    _open_closed_streams()
    if isinstance(sys.stdout, TextIOWrapper):  # a name may have letters that a terminal has not
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _require_folder()
        words = sys.argv[1:] if arguments is None else arguments
        parsed = parser([word for word in words if word in COMMANDS][:1]).parse_args(words)
        parsed.run(parsed)
        sys.stdout.flush()
    except InputError as error:
        return _fail(" ".join(str(error).split()), 2)
    except AutotuneError as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        print("autotune: interrupted; the same command resumes", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output, `head` say, has seen enough
        _drop_output()
    except OSError as error:  # a full disk, say
        _drop_output()
        return _fail(": ".join(map(str, filter(None, (error.filename, error.strerror or error)))), 1)
    return 0


def parser(commands: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser of the whole command line; only the named commands are imported and have their options."""
    whole = _Parser(
        prog="autotune",
        description="Find, verify, remember and serve the fastest configuration of a GPU kernel.",
        epilog="Start with:  autotune search spaces/reduce.yaml",
    )
    whole.add_argument("--version", action="version", version=f"autotune {__version__}")
    added = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        one = added.add_parser(name, help=summary)
        if name in commands:
            _complete(one, import_module(f"autotune.cli.{_module(name)}"))
    return whole


def _module(command: str) -> str:
    """The module of a command; a keyword of Python has an underscore at its end."""
    return f"{command}_" if iskeyword(command) else command


def _complete(one: argparse.ArgumentParser, command: ModuleType) -> None:
    """Give a command's parser its description, its options and what it runs."""
    one.description = (command.__doc__ or "").strip()
    one.epilog = f"Example: {command.EXAMPLE}{getattr(command, 'BEWARE', '')}"
    command.add_options(one)
    one.set_defaults(run=command.run)


def _open_closed_streams() -> None:
    """Give a stream that the caller closed somewhere to go, before a journal is opened under its number."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - lives as long as the process


def _require_folder() -> None:
    try:
        Path.cwd()
    except OSError as error:
        raise InputError(f"the current folder cannot be used: {error.strerror}; change to another") from None


def _drop_output() -> None:
    """What could not be written must not be tried again when the interpreter ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(text: str, code: int) -> int:
    print(f"autotune: {text}", file=sys.stderr)
    return code


def _terminate(*_: Any) -> NoReturn:
    """End as an exception does, so that children and temporary files go too."""
    raise SystemExit(128 + signal.SIGTERM)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)
