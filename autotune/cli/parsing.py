"""Parses a command line; for wrong words, an error suggests what was probably meant."""

from __future__ import annotations

import argparse
import shutil
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from importlib import import_module
from keyword import iskeyword
from types import ModuleType
from typing import Any, NoReturn

from autotune.core.text import hint, nearest
from autotune.core.version import __version__
from autotune.errors import InputError

# One line per command for `autotune --help`. A command's module is imported only when it is used.
GROUPS = {
    "tune": {
        "new": "write a first space file and reference for a kernel",
        "space": "count and check a space, or compile it for GPUs you do not have",
        "search": "tune a kernel and store the best configuration in the cache",
        "run": "verify and time one configuration, or all landmarks",
        "record": "run a program and list what its Triton kernels are tuned for",
        "check": "look for races in configurations, or check cached results again",
    },
    "look": {
        "list": "list stored results and journals, with their ages",
        "show": "list and filter the trials of a search",
        "best": "show what the cache serves for a kernel, as best_config does",
        "compare": "compare the results of several devices",
        "report": "show searches: one HTML file, a figure, or live in a browser",
        "diagnose": "find the bottleneck of a configuration",
        "versus": "compare the tuned kernel with default, libraries and host",
    },
    "ship": {
        "build": "compile what the cache serves, for machines without a compiler",
        "export": "export results to other tools, frameworks, Triton programs and C",
        "import": "import results of other tools",
        "lint-configs": "check configuration files of vLLM and SGLang",
        "merge": "merge caches and journals of several machines",
    },
    "machine": {
        "doctor": "check this machine, and say how to fix what is wrong",
        "devices": "list the devices that --device accepts, or measure one",
    },
}
COMMANDS = tuple(name for commands in GROUPS.values() for name in commands)
_RENAMED = {  # commands of the release before; they go with the next one
    "adopt": ("search", "--engine", "adopt"),
    "ladder": ("run", "--landmarks"),
    "ceilings": ("devices", "--measure"),
    "feasible": ("space", "--compile"),
    "explore": ("report", "--live"),
    "plot": ("report", "--figure"),
}
# Words that people type, and the command for each.
_MEANT = {
    "tune": "search",
    "optimize": "search",
    "init": "new",
    "create": "new",
    "verify": "check",
    "info": "show",
}
_REMOVED = {"replay": "; it is a script now: python benchmarks/search_efficiency.py in a clone"}
_MEANT_OPTIONS = {
    **dict.fromkeys(("trials", "iterations", "evaluations", "max-evals", "n-trials", "b"), "budget"),
    **{"gpu": "device", "target": "device", "type": "dtype", "sizes": "size", "n": "size"},
}


class _Parser(argparse.ArgumentParser):
    """Reports wrong usage in one line, like all wrong input, and accepts no abbreviated options."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)
        self._words: list[str] = []  # the words to parse
        self.example = ""  # a command line

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does; remember the words for messages."""
        self._words = [*(args or ())]  # `list` is a command of this package
        return super().parse_known_args(args, namespace)

    def option_strings(self) -> list[str]:
        """All options, as they are typed."""
        return [option for action in self._actions for option in action.option_strings]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse does; a message names the nearest choice, else all."""
        if action.choices is not None and value not in action.choices:
            meant = hint(str(value).lower(), map(str, action.choices))
            raise argparse.ArgumentError(action, f"unknown value {value!r}{meant}")

    def error(self, message: str) -> NoReturn:
        """Raise InputError; an unknown option comes first: it may be a missing one, misspelt."""
        flags = [word.partition("=")[0] for word in self._words if word.startswith("--")]
        unknown = [flag for flag in flags if flag not in self.option_strings()]
        if message.startswith("the following arguments are required") and unknown:
            message = f"unknown option {unknown[0]}{_nearest_option(unknown[0], self.option_strings())}"
        example = f"; for example: {self.example}" if self.example and " required" in message else ""
        raise InputError(f"{message}{example} (see `{self.prog} --help`)")


class _Root(_Parser):
    """The parser of the command itself, whose help has the commands in groups."""

    def format_help(self) -> str:
        """The usage, and each group of commands with a line for each."""
        longest = max(map(len, COMMANDS))
        lines = [self.format_usage(), f"{self.description}\n", f"Example: {self.example}\n"]
        for title, commands in GROUPS.items():
            lines += [f"{title}:", *(f"  {name:{longest}}  {text}" for name, text in commands.items()), ""]
        return "\n".join(lines)


def present_words(words: Sequence[str]) -> Sequence[str]:
    """A command line with the present name of a renamed command, which a warning tells."""
    if not words or words[0] not in _RENAMED:
        return words
    now = _RENAMED[words[0]]
    warnings.warn(
        f"`autotune {words[0]}` is now `autotune {' '.join(now)}`; the next release removes the old name",
        stacklevel=2,
    )
    return (*now, *words[1:])


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; raises InputError with the nearest command or option for an unknown one."""
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in COMMANDS:
        meant = f"; did you mean {_MEANT[command]}?" if command in _MEANT else hint(command, COMMANDS)
        raise InputError(f"unknown command {command!r}{_REMOVED.get(command, meant)}")
    parsed, unknown = parser([command] if command else ()).parse_known_args(words)
    if unknown:
        name = unknown[0].partition("=")[0]
        if name.startswith("-"):
            near = _nearest_option(name, parsed.parser.option_strings())
            parsed.parser.error(f"unknown option {name}{near}")
        joined = _joined(unknown[0], words, parsed.parser.option_strings())
        parsed.parser.error(f"unknown argument {unknown[0]}{joined}")
    return parsed


def _joined(word: str, words: Sequence[str], options: Collection[str]) -> str:
    """How to write `n=100`, or a word that follows the value of an option, as in `--size n 100`."""
    option, value = ["", "", *words[: [*words].index(word)]][-2:]
    if "--size" in options and option not in ("--size", "--config") and "=" in word:
        parameter = f", or --config {word} if it is a parameter" if "--config" in options else ""
        return f"; write --size {word}{parameter}"
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
    root = _Root(
        prog="autotune",
        description="Find, verify, remember and serve the fastest configuration of a GPU kernel.",
    )
    root.example = "autotune search spaces/reduce.yaml"
    root.add_argument("--version", action="version", version=f"autotune {__version__}")
    subparsers = root.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for name in COMMANDS:
        subparser = subparsers.add_parser(name, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name in commands:
            module = f"{name}_" if iskeyword(name) else name.replace("-", "_")
            _add_command(subparser, import_module(f"autotune.cli.{module}"))
    return root


def complete_words() -> None:
    """For the shell, print the possible next words of a command line, and exit."""
    import argcomplete
    from argcomplete.completers import FilesCompleter

    from autotune.devices.listing import find_devices
    from autotune.searchers import engine_names, strategy_names
    from autotune.serving.cache import kernels, read_roots

    words: dict[str, Callable[[], Iterable[str]]] = {  # by option or argument; `kernel` may also be a file
        "device": lambda: [str(address) for address, _ in find_devices()],
        "engine": engine_names,
        "strategy": lambda: [name for engine in engine_names() for name in strategy_names(engine)],
        "kernel": lambda: [name for root in read_roots() for name in kernels(root)],
    }

    class WordsOrFiles(FilesCompleter):
        def __call__(self, prefix: str, **typed: Any) -> list[str]:
            name = typed["action"].dest
            own = [*words[name]()] if name in words else []
            return own if own and name != "kernel" else [*own, *super().__call__(prefix, **typed)]

    argcomplete.autocomplete(parser(), default_completer=WordsOrFiles())


def _add_command(subparser: _Parser, command: ModuleType) -> None:
    """Give a command's parser its description, its options and the function it runs."""
    width = max(40, min(80, shutil.get_terminal_size().columns)) - 2  # as argparse keeps it for options
    first, *others = (command.__doc__ or "").strip().split("\n\n")
    paragraphs = (first, f"Example: {command.EXAMPLE}", *others)
    subparser.description = "\n\n".join(textwrap.fill(" ".join(text.split()), width) for text in paragraphs)
    subparser.example = command.EXAMPLE
    command.add_options(subparser)
    subparser.set_defaults(run=command.run, parser=subparser)
