"""Options that several commands share, and their way from text to typed values."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autotune.core.launch_plan import RESERVED_SIZES
from autotune.errors import InputError, WriteError
from autotune.tuning.options import Options
from autotune.tuning.task import Target

MAX_S = 86_400.0
MAX_SEED = 2**32 - 1


def target(parsed: argparse.Namespace) -> Target:
    """What the target options name."""
    return Target(parsed.space, parsed.device, sizes(parsed), parsed.dtype)


def sizes(parsed: argparse.Namespace) -> dict[str, int]:
    """`--size n=1000 --size m=2000`; raises InputError for anything else."""
    found = {}
    for text in parsed.size:
        name, separator, number = text.partition("=")
        digits = number.replace("_", "").replace(",", "")
        if not separator or not name or not re.fullmatch("[0-9]{1,18}", digits) or int(digits) < 1:
            raise InputError(
                f"--size {text}: expected NAME=NUMBER with a number of at least 1, such as n=1000000"
            )
        if name in RESERVED_SIZES:
            raise InputError(f"--size {text}: {name} cannot be the name of a size")
        found[name] = int(digits)
    return found


def add_target(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """The space, which may be left out when it is optional, the device and the problem."""
    add_space(parser, optional=optional)
    parser.add_argument(
        "--device", help="opencl:0, a backend, a name or a slug (default: the first GPU, else the CPU)"
    )
    add_problem(parser)


def add_space(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """The space."""
    parser.add_argument(
        "space",
        type=Path,
        nargs="?" if optional else None,
        help="a space file, or the name of one that comes with autotune: reduce",
    )


def add_problem(parser: argparse.ArgumentParser) -> None:
    """The sizes and the element type."""
    parser.add_argument(
        "--size", metavar="NAME=N", action="append", default=[], help="a problem size; repeat for several"
    )
    parser.add_argument("--dtype", help="element type, such as float32 (default: the first that is declared)")


def add_run(parser: argparse.ArgumentParser) -> None:
    """How trials are run and where they are recorded."""
    run = parser.add_argument_group("how to run")
    run.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=Options.timeout_s,
        help="limit for one trial (default %(default)g)",
    )
    run.add_argument(
        "--journal", metavar="FILE", type=Path, help="where trials are recorded (default: a file in runs/)"
    )
    run.add_argument("--fresh", action="store_true", help="forget the journal's trials and start over")
    add_compiling(parser)


def run_options(parsed: argparse.Namespace, **others: Any) -> Options:
    """What `add_run` declares as options of a run; `others` are the fields that a command decides itself."""
    return Options(
        timeout_s=parsed.timeout,
        compile_timeout_s=parsed.compile_timeout,
        workers=parsed.workers,
        journal=parsed.journal,
        fresh=parsed.fresh,
        binary_cache=parsed.binary_cache,
        cache=parsed.cache,
        **others,
    )


def add_cache(parser: argparse.ArgumentParser, what: str, *, reads: bool = True) -> None:
    """Where tuned results are; `what` says what the command does there, and whether it `reads` them."""
    places = "./cache and the one that comes with autotune" if reads else "./cache"
    parser.add_argument(
        "--cache", metavar="DIR", type=Path, help=f"{what} (default: $AUTOTUNE_CACHE, else {places})"
    )


def add_compiling(parser: argparse.ArgumentParser) -> None:
    """How sources become binaries."""
    compiling = parser.add_argument_group("how to compile")
    compiling.add_argument(
        "--workers",
        metavar="N",
        type=at_least(1),
        help="compiler processes (default: one per core; where a GPU runs trials, two fewer)",
    )
    compiling.add_argument(
        "--compile-timeout",
        metavar="SECONDS",
        type=seconds,
        default=Options.compile_timeout_s,
        help="limit for one compilation (default %(default)g)",
    )
    compiling.add_argument(
        "--no-binary-cache",
        dest="binary_cache",
        action="store_false",
        help="compile everything, even what an earlier run compiled",
    )


def add_plot(parser: argparse.ArgumentParser, what: str) -> None:
    """A picture of the result; `what` says of what kind."""
    parser.add_argument("--plot", metavar="FILE.svg", type=_svg, help=what)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Output for scripts."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def seconds(text: str) -> float:
    """A positive number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= MAX_S:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a positive number of seconds, a day at most")
    return number


def at_least(least: int) -> Callable[[str], int]:
    """A whole number that is not smaller than `least`."""

    def whole(text: str) -> int:
        number = int(text) if re.fullmatch("-?[0-9]{1,18}", text) else least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of at least {least}")
        return number

    return whole


def seed(text: str) -> int:
    """A seed that every library takes."""
    number = at_least(0)(text)
    if number > MAX_SEED:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of at most {MAX_SEED}")
    return number


def _svg(text: str) -> Path:
    """A file to write SVG to."""
    path = Path(text)
    if path.suffix != ".svg":
        raise argparse.ArgumentTypeError(f"{text!r}: plots are SVG; expected a name that ends with .svg")
    folder = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise WriteError(f"--plot {text}: cannot be written; name a file in a folder that you may write to")
    return path
