"""The command line: parse, call one function of a lower layer, print. A module for each verb.

Each verb's module has its description as its docstring, an EXAMPLE, `add_options` and `run`.
Exit codes: 0 done, 1 something failed, 2 the input was wrong (nothing was written then), 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from autotune import __version__
from autotune.cli import (
    adopt,
    best,
    compare,
    devices,
    export,
    feasible,
    import_,
    ladder,
    merge,
    new,
    replay,
    search,
    show,
    space,
)
from autotune.errors import AutotuneError, InputError

VERBS = (
    search,
    adopt,
    best,
    compare,
    merge,
    devices,
    new,
    space,
    feasible,
    ladder,
    show,
    replay,
    import_,
    export,
)


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
    try:
        _require_folder()
        parsed = parser().parse_args(arguments)
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


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    whole = _Parser(
        prog="autotune",
        description="Find, verify, remember and serve the fastest configuration of a GPU kernel.",
        epilog="Start with:  autotune search spaces/reduce.yaml",
    )
    whole.add_argument("--version", action="version", version=f"autotune {__version__}")
    verbs = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for verb in VERBS:
        _add_verb(verbs, verb)
    return whole


def _add_verb(verbs: Any, verb: ModuleType) -> None:
    """A subcommand named after its module, described by the module's docstring."""
    text = (verb.__doc__ or "").strip()
    one = verbs.add_parser(
        verb.__name__.rpartition(".")[2].rstrip("_"),  # a keyword of Python, `import`, has a trailing "_"
        help=text.split(":")[0].rstrip("."),
        description=text,
        epilog=f"Example: {verb.EXAMPLE}",
    )
    verb.add_options(one)
    one.set_defaults(run=verb.run)


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
