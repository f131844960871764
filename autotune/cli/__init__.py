"""The command line: parse the arguments, call one function of a lower layer, print. One module per command.

A command's module has its description as its docstring, an EXAMPLE, `add_options` and `run`.
Exit codes: 0 done, 1 it failed, 2 the input was wrong and nothing was written, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from io import TextIOWrapper
from keyword import iskeyword
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from autotune import __version__
from autotune.core.text import hint, nearest
from autotune.errors import AutotuneError, InputError

# What `autotune --help` says about each command. A command's module is imported only when it is used.
COMMANDS = {
    "search": "tune a kernel and store the best configuration in the cache",
    "adopt": "tune in ten runs, starting from results of other devices or sizes",
    "best": "show what the cache serves for a kernel, as best_config does",
    "compare": "compare the results of several devices",
    "merge": "merge caches and journals of several machines",
    "doctor": "check this machine for tuning, with what to do",
    "devices": "list the devices that --device accepts",
    "ceilings": "measure what a device can reach",
    "diagnose": "find out what bounds a configuration",
    "versus": "time the tuned kernel beside what else does its work",
    "new": "write a first space file and reference for a kernel",
    "space": "count and check a space; explain why a configuration is invalid",
    "feasible": "compile a space for GPUs that you do not have",
    "run": "verify and time one configuration",
    "build": "compile what the cache serves, for machines without a compiler",
    "check": "look for races in configurations, or check cached results again",
    "ladder": "time the landmarks of a space beside the tuned best",
    "list": "list stored results and journals, with their ages",
    "show": "list and filter the trials of a search",
    "plot": "draw one figure of a search or of the cache",
    "report": "write one HTML file with charts of searches",
    "explore": "show the searches of a folder in a browser, live",
    "replay": "replay a search on recorded results and score it",
    "import": "import results and spaces of other tools",
    "export": "export results for other tools or as a C header",
}
_SHOWING_PROGRESS = ("adopt", "check", "diagnose", "feasible", "ladder", "run", "search", "versus")
# What people type, and what it is called here.
_MEANT = {
    "tune": "search",
    "optimize": "search",
    "init": "new",
    "create": "new",
    "verify": "check",
    "info": "show",
}
_MEANT_OPTIONS = {
    **dict.fromkeys(("trials", "iterations", "evaluations", "max-evals", "n-trials", "b"), "budget"),
    **{"gpu": "device", "target": "device", "type": "dtype", "sizes": "size", "n": "size"},
}
_HELP = {"-h", "--help"}
_QUIET = {"-q", "--quiet", *_HELP}
_COMPLETION = "_ARGCOMPLETE"  # set by the shell's completion


_interrupts: list[int] = []  # signals received since the command began


class _Parser(argparse.ArgumentParser):
    """Reports wrong usage in one line, like all wrong input, and accepts no abbreviated options."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)
        self._words: list[str] = []  # what it was asked to parse

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does; remember the words for messages."""
        self._words = [*(args or ())]  # `list` is a command of this package
        return super().parse_known_args(args, namespace)

    def option_strings(self) -> list[str]:
        """All options, as they are typed."""
        return [option for action in self._actions for option in action.option_strings]

    def error(self, message: str) -> NoReturn:
        """Raise InputError; an unknown option comes before what is missing, for it may be the same."""
        flags = [word.partition("=")[0] for word in self._words if word.startswith("--")]
        unknown = [flag for flag in flags if flag not in self.option_strings()]
        if message.startswith("the following arguments are required") and unknown:
            message = f"unknown option {unknown[0]}{_nearest_option(unknown[0], self.option_strings())}"
        example = (
            f"; for example: {self.epilog.partition('Example: ')[2]}"
            if self.epilog and " required" in message
            else ""
        )
        raise InputError(f"{message}{example} (see `{self.prog} --help`)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    warnings.showwarning = _show_warning
    signal.signal(signal.SIGTERM, _terminate)
    _interrupts.clear()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    _open_closed_streams()
    if isinstance(sys.stdout, TextIOWrapper):  # for names that the terminal's encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _require_folder()
        words = sys.argv[1:] if arguments is None else arguments
        if _COMPLETION in os.environ:
            _complete_words()
        if not words:
            parser(()).print_help()
            return 0
        _say_starting(words)
        _start_early(words)
        parsed = _parse(words)
        parsed.run(parsed)
        sys.stdout.flush()
    except InputError as error:
        return _fail(" ".join(str(error).split()), 2)
    except AutotuneError as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        return _fail("interrupted; the same command resumes", 130)
    except ImportError:
        if not _interrupts:
            raise
        return _fail("interrupted; the same command resumes", 130)
    except BrokenPipeError:  # the reader of the output, such as `head`, has finished
        _drop_output()
    except OSError as error:  # such as a full disk
        _drop_output()
        return _fail(": ".join(map(str, filter(None, (error.filename, error.strerror or error)))), 1)
    return 0


def _say_starting(words: Sequence[str]) -> None:
    """On a terminal, say that a long command starts before its modules are imported; progress replaces it."""
    is_shown = words[0] in _SHOWING_PROGRESS and not _QUIET.intersection(words)
    if is_shown and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        print("starting", end="\r", file=sys.stderr, flush=True)


def _start_early(words: Sequence[str]) -> None:
    """For a command with processes, start what forks them, while this process still imports the command."""
    if words[0] in _SHOWING_PROGRESS and not _HELP.intersection(words):
        from autotune.processes.fork_server import preload

        preload(("autotune.devices",))  # the first that every process needs


def _parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; raises InputError with the nearest command or option for an unknown one."""
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        meant = f"; did you mean {_MEANT[command]}?" if command in _MEANT else hint(command, COMMANDS)
        raise InputError(f"unknown command {command!r}{meant}")
    parsed, unknown = parser([command] if command else ()).parse_known_args(words)
    if unknown:
        name = unknown[0].partition("=")[0]
        if name.startswith("-"):
            near = _nearest_option(name, parsed.parser.option_strings())
            parsed.parser.error(f"unknown option {name}{near}")
        has_sizes = "--size" in parsed.parser.option_strings()
        parsed.parser.error(f"unknown argument {unknown[0]}{_joined(unknown[0], words, has_sizes=has_sizes)}")
    return parsed


def _joined(word: str, words: Sequence[str], *, has_sizes: bool) -> str:
    """How to write `n=100`, or a word that follows the value of an option, as in `--size n 100`."""
    option, value = ["", "", *words[: [*words].index(word)]][-2:]
    if has_sizes and option not in ("--size", "--config") and "=" in word:
        return f"; write --size {word}"
    if option not in ("--size", "--config") or value.startswith("-"):
        return ""
    if "=" not in value:
        return f"; write {option} {value}={word}"
    return (
        f"; write {option} {value} {option} {word}"
        if option == "--size"
        else f"; write {option} {value},{word}"
    )


def _nearest_option(name: str, options: Iterable[str]) -> str:
    """As `nearest`, without the dashes, which make any two options similar."""
    words = [option.removeprefix("--") for option in options if option.startswith("--")]
    if _MEANT_OPTIONS.get(name.lstrip("-")) in words:
        return f"; did you mean --{_MEANT_OPTIONS[name.lstrip('-')]}?"
    return nearest(name.lstrip("-"), words).replace("did you mean ", "did you mean --")


def parser(commands: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Make the parser of the command line; only the named commands are imported and get their options."""
    root = _Parser(
        prog="autotune",
        description="Find, verify, remember and serve the fastest configuration of a GPU kernel.",
        epilog="Start with:  autotune search spaces/reduce.yaml",
    )
    root.add_argument("--version", action="version", version=f"autotune {__version__}")
    subparsers = root.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(
            name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name in commands:
            module = f"{name}_" if iskeyword(name) else name
            _add_command(subparser, import_module(f"autotune.cli.{module}"))
    return root


def _complete_words() -> None:
    """Print what can follow on a half-typed command line, for the shell, and exit."""
    import argcomplete

    argcomplete.autocomplete(parser())


def _add_command(subparser: _Parser, command: ModuleType) -> None:
    """Give a command's parser its description, its options and the function it runs."""
    subparser.description = (command.__doc__ or "").strip()
    subparser.epilog = f"Example: {command.EXAMPLE}"
    command.add_options(subparser)
    subparser.set_defaults(run=command.run, parser=subparser)


def _open_closed_streams() -> None:
    """Reopen streams that the caller closed, so that no journal is opened under their file descriptors."""
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
    """Discard what could not be written, so that the interpreter does not try again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(text: str, code: int) -> int:
    print(f"autotune: {text}", file=sys.stderr)
    return code


def _interrupt(*_: Any) -> NoReturn:
    """Raise KeyboardInterrupt and record it: numpy, while being imported, makes an ImportError of it."""
    _interrupts.append(signal.SIGINT)
    raise KeyboardInterrupt


def _terminate(*_: Any) -> NoReturn:
    """Exit by an exception, so that child processes and temporary files are cleaned up."""
    raise SystemExit(128 + signal.SIGTERM)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)
