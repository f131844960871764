"""The options of each command, and their way from text to typed values."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from autotune.errors import ExpressionError, InputError
from autotune.expressions import parse
from autotune.model import Config, Value
from autotune.plan import RESERVED_SIZES
from autotune.rig import DEFAULT_BUDGET, Options
from autotune.space import SpaceSpec
from autotune.space.document import hint
from autotune.targets import Target
from autotune.trials import Budget, Status, Trial

LONGEST_S = 86_400.0


def add_search(parser: argparse.ArgumentParser) -> None:
    """Options of `search`."""
    _add_target(parser)
    how = parser.add_argument_group("how to search")
    how.add_argument(
        "--engine",
        help="exhaustive, random, kernel_tuner or optuna; left out: exhaustive when the budget covers the "
        "space, else optuna with its TPE sampler",
    )
    how.add_argument("--strategy", metavar="NAME", help="a strategy of Kernel Tuner or a sampler of Optuna")
    how.add_argument(
        "--budget",
        metavar="N",
        type=_at_least(1),
        help=f"configurations to try (default {DEFAULT_BUDGET.trials})",
    )
    how.add_argument(
        "--time",
        metavar="SECONDS",
        type=_seconds,
        help="stop after this long; without --budget it alone decides",
    )
    how.add_argument(
        "--seed", type=_at_least(0), default=Options.seed, help="seed of the search (default %(default)s)"
    )
    how.add_argument(
        "--workers", metavar="N", type=_at_least(1), help="compiler processes (default: one per core)"
    )
    _add_run(parser)
    _add_cache(parser, "where the result is kept")
    _add_json(parser)


def add_ladder(parser: argparse.ArgumentParser) -> None:
    """Options of `ladder`."""
    _add_target(parser)
    _add_run(parser)
    _add_cache(parser, "where the tuned best is looked up")
    _add_json(parser)


def add_space(parser: argparse.ArgumentParser) -> None:
    """Options of `space`."""
    _add_target(parser)
    parser.add_argument(
        "--config",
        metavar="A=1,B=x",
        help="say whether this configuration is valid, and why not; the rest is the default's",
    )
    _add_json(parser)


def add_best(parser: argparse.ArgumentParser) -> None:
    """Options of `best`."""
    parser.add_argument("kernel", help="name of the kernel, as in its space file")
    parser.add_argument(
        "--device",
        help="opencl:0, a name or a slug (default: as `search`)",
    )
    _add_problem(parser)
    parser.add_argument(
        "--strict", action="store_true", help="accept only this device and exactly these sizes"
    )
    _add_cache(parser, "the cache to look in")
    _add_json(parser)


def add_devices(parser: argparse.ArgumentParser) -> None:
    """Options of `devices`."""
    _add_json(parser)


def add_show(parser: argparse.ArgumentParser) -> None:
    """Options of `show`."""
    parser.add_argument("journal", type=Path, help="a file of runs/")
    parser.add_argument(
        "--status", choices=[status.value for status in Status], help="only trials that ended so"
    )
    parser.add_argument("--where", metavar="EXPRESSION", help="only configurations for which this holds")
    parser.add_argument(
        "--sort", metavar="NAME", default="time", help="time, order, or a parameter (default %(default)s)"
    )
    parser.add_argument("--limit", metavar="N", type=_at_least(1), help="the first N only")
    _add_json(parser)


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


def budget(parsed: argparse.Namespace) -> Budget:
    """Trials and seconds; without either, the default number of trials."""
    if parsed.budget is None and parsed.time is None:
        return DEFAULT_BUDGET
    return Budget(parsed.budget, parsed.time)


def config(text: str, spec: SpaceSpec) -> Config:
    """`BLOCK_SIZE=96,UNROLL=4` over the space's default; values are read as the space writes them."""
    values: dict[str, Value] = dict(spec.default)
    written = {item.name: {str(value).lower(): value for value in item.values} for item in spec.parameters}
    for part in filter(None, text.replace(",", " ").split()):
        name, separator, value = part.partition("=")
        if not separator:
            raise InputError(f"--config {part}: expected NAME=VALUE, such as BLOCK_SIZE=128")
        if name not in values:
            raise InputError(f"--config {part}: unknown parameter{hint(name, values)}")
        values[name] = written.get(name, {}).get(value.lower(), value)
    return Config(values)


def select(trials: Sequence[Trial], parsed: argparse.Namespace) -> list[Trial]:
    """Filter and sort the trials as `show` was asked to."""
    chosen = [trial for trial in trials if parsed.status in (None, trial.status.value)]
    if parsed.where is not None:
        condition = parse(parsed.where)
        known = {name for trial in trials for name in trial.config}
        if unknown := condition.names - known:
            raise ExpressionError(
                f"--where: unknown name {min(unknown)!r}; expected {', '.join(sorted(known))}"
            )
        chosen = [trial for trial in chosen if condition(trial.config)]
    if parsed.sort == "time":
        chosen.sort(key=lambda trial: math.inf if trial.time_ms is None else trial.time_ms)
    elif parsed.sort != "order":
        if any(parsed.sort not in trial.config for trial in trials):
            raise InputError(f"--sort {parsed.sort}: expected time, order or the name of a parameter")
        chosen.sort(key=lambda trial: (isinstance(trial.config[parsed.sort], str), trial.config[parsed.sort]))
    return chosen[: parsed.limit]


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "space", type=Path, help="a space file, or the name of one that comes with autotune: reduce"
    )
    parser.add_argument(
        "--device", help="opencl:0, a backend, a name or a slug (default: the first GPU, else the CPU)"
    )
    _add_problem(parser)


def _add_problem(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--size", metavar="NAME=N", action="append", default=[], help="a problem size; repeat for several"
    )
    parser.add_argument("--dtype", help="element type, such as float32 (default: the first that is declared)")


def _add_run(parser: argparse.ArgumentParser) -> None:
    run = parser.add_argument_group("how to run")
    run.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=Options.timeout_s,
        help="limit for one trial (default %(default)g)",
    )
    run.add_argument(
        "--compile-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=Options.compile_timeout_s,
        help="limit for one compilation (default %(default)g)",
    )
    run.add_argument(
        "--journal", metavar="FILE", type=Path, help="where trials are recorded (default: a file in runs/)"
    )
    run.add_argument("--fresh", action="store_true", help="forget the journal's trials and start over")


def _add_cache(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--cache", metavar="DIR", type=Path, help=f"{what} (default: $AUTOTUNE_CACHE, else ./cache)"
    )


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a positive number of seconds, a day at most")
    return number


def _at_least(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        number = int(text) if re.fullmatch("-?[0-9]{1,18}", text) else least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of at least {least}")
        return number

    return whole
