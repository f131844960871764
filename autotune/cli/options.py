"""Options that several commands share, and the conversion of their texts to typed values."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.cli.sizes import parse_sizes
from autotune.core import timeline
from autotune.core.launch_plan import TRITON
from autotune.core.records import Config, Value
from autotune.core.text import hint
from autotune.core.trials import CACHES, LAUNCHES, MAX_SEARCH_S, USUAL, Budget, CallMode
from autotune.errors import InputError, WriteError
from autotune.processes.files import write_output
from autotune.report.figures import SUFFIXES
from autotune.tuning.options import Options

if TYPE_CHECKING:  # these load numpy, and progress should show from the start
    from autotune.cli.progress import SearchProgress
    from autotune.space import SpaceSpec
    from autotune.tuning.task import Target, TuningTask

MAX_SEED = 2**32 - 1


def target(parsed: argparse.Namespace) -> Target:
    """The target that the options name."""
    from autotune.tuning.task import Target

    measure = getattr(parsed, "measure", USUAL)  # not every command runs kernels
    sizes, devices = parse_sizes(parsed.size), getattr(parsed, "devices", None)
    return Target(parsed.space, parsed.device, sizes, parsed.dtype, parsed.data, measure, devices)


@contextmanager
def open_task(parsed: argparse.Namespace) -> Iterator[tuple[TuningTask, SearchProgress]]:
    """The task that the options name; progress shows from before the task is read until this is closed."""
    from autotune.devices.listing import listing_for
    from autotune.evaluation.imports_ahead import import_ahead

    listing = listing_for(getattr(parsed, "devices", None) or parsed.device)
    import_ahead(listing, triton=_is_triton(parsed.space))
    try:
        with progress(parsed) as shown:
            import autotune.tuning.tuner  # all commands need it later  # noqa: F401
            from autotune.tuning.task import read_task

            yield read_task(target(parsed), shown.stage, listing=listing), shown
    finally:
        listing.abandon()


@contextmanager
def timeline_file(path: Path | None, name: str) -> Iterator[None]:
    """Write the timeline of what this process, called by a name, does meanwhile; None writes none."""
    if path is None:
        yield
        return
    write_output(path, "")  # an error shows before the work, not after it
    timeline.begin(name)
    try:
        yield
    finally:
        write_output(path, timeline.chrome_trace(timeline.taken()))
        timeline.end()


def alone_if_enough(
    task: TuningTask, devices: str | None, budget: Budget, warn: Callable[[str], None]
) -> TuningTask:
    """The task with its first device only, and a warning, if `--devices all` gains nothing in the budget."""
    from autotune.devices.listing import ALL
    from autotune.tuning.local_devices import why_one

    if devices != ALL:
        return task
    most = len(task.space) if budget.trials is None else min(budget.trials, len(task.space))
    reason = why_one(1 + len(task.others), replace(budget, trials=most))
    if reason:
        warn(f"--devices {ALL}: searching with {task.address} only: {reason}")
    return replace(task, others=()) if reason else task


def _is_triton(space: Path) -> bool:
    """True if a file seems to be a space for Triton, whose compiler takes longest to load."""
    try:
        text = space.read_text(encoding="utf-8") if space.is_file() else ""
    except (OSError, ValueError):  # reported when the space is read
        return False
    return re.search(rf"^dialect: *{TRITON}\b", text, re.MULTILINE) is not None


def progress(parsed: argparse.Namespace, first_line_s: float = 5.0) -> SearchProgress:
    """The progress display that the options of `add_verbosity` ask for."""
    from autotune.cli.progress import SearchProgress, Verbosity

    chosen = Verbosity.QUIET if parsed.quiet else Verbosity.VERBOSE if parsed.verbose else Verbosity.NORMAL
    return SearchProgress(chosen, first_line_s=first_line_s)


def config(texts: Iterable[str], spec: SpaceSpec) -> Config:
    """Parse the texts of one configuration, such as `BLOCK_SIZE=96,UNROLL=4`; the rest is the default's.

    A boolean may be given as 0 or 1, its form in a kernel.
    """
    values: dict[str, Value] = dict(spec.default)
    domains = {
        parameter.name: {str(int(value)): value for value in parameter.values if isinstance(value, bool)}
        | {str(value).lower(): value for value in parameter.values}
        for parameter in spec.parameters
    }
    for part in ",".join(texts).replace(",", " ").split():
        name, separator, value = part.partition("=")
        if not separator:
            raise InputError(f"--config {part}: expected NAME=VALUE, such as BLOCK_SIZE=128")
        if name not in values:
            raise InputError(f"--config {part}: unknown parameter{hint(name, values)}")
        values[name] = domains.get(name, {}).get(value.lower(), value)
    return Config(values)


def require_unset(parsed: argparse.Namespace, why: str, *names: str) -> None:
    """Raise InputError for options, named as their attributes, that have no meaning among the others."""
    in_use = [name for name in names if getattr(parsed, name) != parsed.parser.get_default(name)]
    if in_use:
        raise InputError(f"{why}: leave out {', '.join('--' + name.replace('_', '-') for name in in_use)}")


def require_valid(task: TuningTask, config: Config) -> None:
    """Raise InputError for a configuration that is not valid."""
    if reasons := task.space.why_invalid(config):
        raise InputError(f"{task.spec.path}: {config}: not valid on {task.device.name}: {'; '.join(reasons)}")


def valid_configs(texts: Iterable[str], task: TuningTask) -> list[Config]:
    """Parse the texts of several configurations; raises InputError for one that is not valid."""
    configs = [config([text], task.spec) for text in texts]
    for chosen in configs:
        require_valid(task, chosen)
    return configs


def add_target(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    add_space(parser, optional=optional)
    add_device(parser)
    add_problem(parser)
    add_data(parser)


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-d",
        "--device",
        help="a backend, a device such as opencl:0, its name or slug (default: the first GPU, else the CPU)",
    )


def add_space(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    parser.add_argument(
        "space",
        type=Path,
        nargs="?" if optional else None,
        help="a space file, a space's name, such as reduce, or a journal, which gives kernel and problem",
    )


def kernel(text: str) -> str:
    """The name of a kernel, which its space file or a journal of it may stand for."""
    path = Path(text)
    if path.suffix == ".yaml":
        from autotune.space import load_space

        return load_space(path).kernel
    if path.suffix == ".jsonl":
        from autotune.evaluation.journal import read_journal

        return str(read_journal(path).header.get("kernel", text))
    return text


def results(text: str) -> str:
    """A file with results, or the name of a kernel, which its space file may stand for."""
    return kernel(text) if text.endswith(".yaml") else text


def add_sizes(parser: argparse._ActionsContainer, text: str) -> None:
    """Add the sizes, to be read with `parse_sizes`."""
    parser.add_argument("--size", metavar="NAME=N", action="append", default=[], help=text)


def add_problem(parser: argparse.ArgumentParser) -> None:
    add_sizes(parser, "a problem size; repeat for further sizes")
    parser.add_argument("--dtype", help="element type, such as float32 (default: the first in the space)")


def add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", metavar="NAME", help="one of the data sets that the space names (default: the first)"
    )


def add_sweep(parser: argparse._ActionsContainer, help_text: str) -> None:
    parser.add_argument("--sweep", metavar="NAME=SIZES|FILE", action="append", default=[], help=help_text)


def add_config(parser: argparse._ActionsContainer, help_text: str, **settings: Any) -> None:
    """Add configurations as texts for `config`; `help_text` is their help text."""
    parser.add_argument(
        "--config",
        metavar="A=1,B=x",
        action="append",
        help=f"{help_text}; omitted parameters have the default's value",
        **settings,
    )


def add_choice(parser: argparse.ArgumentParser, verb: str) -> None:
    """Add the options that name one configuration; `verb` says what the command does with it."""
    which = parser.add_mutually_exclusive_group()
    add_config(which, f"{verb} this configuration")
    which.add_argument("--landmark", metavar="NAME", help=f"{verb} a landmark of the space")
    which.add_argument(
        "--default",
        action="store_true",
        help=f"{verb} the space's default (without any of the three: the tuned best, else the default)",
    )


def chosen_config(parsed: argparse.Namespace, task: TuningTask) -> tuple[Config, str]:
    """The configuration that the options name, with its description; raises InputError if it is invalid."""
    from autotune.tuning.served_best import tuned_best

    if parsed.config is not None:
        chosen, origin = config(parsed.config, task.spec), "as given"
    elif parsed.landmark is not None:
        landmarks = {landmark.name: landmark.config for landmark in task.spec.landmarks}
        if parsed.landmark not in landmarks:
            parameter = task.spec.parameters[0]
            none = f"; the space names none: give --config {parameter.name}={parameter.values[0]}"
            meant = hint(parsed.landmark, landmarks) if landmarks else none
            raise InputError(f"--landmark {parsed.landmark}: unknown landmark{meant}")
        chosen, origin = landmarks[parsed.landmark], f"the landmark {parsed.landmark}"
    else:
        best = None if parsed.default else tuned_best(task, parsed.cache)
        chosen, origin = (task.spec.default, "the default") if best is None else (best, "the tuned best")
    require_valid(task, chosen)
    return chosen, origin


def add_run(parser: argparse.ArgumentParser, *, resumes: bool = False) -> None:
    """Add how trials run and where they are recorded; with `resumes`, an existing journal continues."""
    run = parser.add_argument_group("how to run")
    run.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=Options.timeout_s,
        help="time limit for one trial (default %(default)g)",
    )
    run.add_argument(
        "--measure",
        metavar="WORDS",
        type=call_mode,
        default=USUAL,
        help="how programs will call the kernel: with cold or warm caches, launched by graph or eager, such "
        "as warm,graph (default: as the space says, else cold on a GPU and warm on a CPU)",
    )
    run.add_argument(
        "--journal", metavar="FILE", type=Path, help="where to record trials (default: a file in runs/)"
    )
    run.add_argument(
        "--dump-wrong",
        metavar="DIR",
        type=Path,
        help="write found and expected arrays of the first wrong results as .npy files",
    )
    if resumes:
        edited = run.add_mutually_exclusive_group()
        edited.add_argument("--fresh", action="store_true", help="delete the journal's trials and start over")
        edited.add_argument(
            "--keep",
            action="store_true",
            help="after you edit the space or the reference, continue with the journal's times that still "
            "hold",
        )
    add_compiling(parser)
    add_verbosity(parser)


def add_no_sanitizer(parser: argparse._ActionsContainer, help_text: str) -> None:
    parser.add_argument("--no-sanitizer", dest="sanitizer", action="store_false", help=help_text)


def add_verbosity(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("-q", "--quiet", action="store_true", help="show no progress, only warnings")
    group.add_argument(
        "-v", "--verbose", action="store_true", help="also print every stage with its time, and every trial"
    )


def run_options(parsed: argparse.Namespace, **others: Any) -> Options:
    """The options that `add_run` added; `others` are the fields that the command sets itself."""
    return Options(
        timeout_s=parsed.timeout,
        compile_timeout_s=parsed.compile_timeout,
        compilers=parsed.compilers,
        journal=parsed.journal,
        fresh=getattr(parsed, "fresh", False),  # not every command resumes
        keep=getattr(parsed, "keep", False),
        dump_wrong=parsed.dump_wrong,
        binary_cache=parsed.binary_cache,
        cache=parsed.cache,
        **others,
    )


def add_cache(parser: argparse.ArgumentParser, help_text: str, *, reads: bool = True) -> None:
    """Add the cache folder; with `reads`, results are also read from the cache that comes with autotune."""
    places = "./cache and the one that comes with autotune" if reads else "./cache"
    parser.add_argument(
        "--cache", metavar="DIR", type=Path, help=f"{help_text} (default: $AUTOTUNE_CACHE, else {places})"
    )


def add_compiling(parser: argparse.ArgumentParser) -> None:
    compiling = parser.add_argument_group("how to compile")
    compiling.add_argument(
        "--compilers",
        metavar="N",
        type=at_least(1),
        help="number of compiler processes (default: one per core; with a GPU, two fewer)",
    )
    compiling.add_argument(
        "--compile-timeout",
        metavar="SECONDS",
        type=seconds,
        default=Options.compile_timeout_s,
        help="time limit for one compilation (default %(default)g)",
    )
    compiling.add_argument(
        "--no-binary-cache",
        dest="binary_cache",
        action="store_false",
        help="compile everything; reuse no binaries of earlier runs",
    )


def add_plot(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument("--plot", metavar="FILE", type=figure_file, help=f"{help_text}: .svg, .png or .pdf")


def add_output(parser: argparse.ArgumentParser, help_text: str, **settings: Any) -> None:
    parser.add_argument("-o", "--output", type=Path, help=help_text, **{"metavar": "FILE", **settings})


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def call_mode(text: str) -> CallMode:
    """Parse `warm,graph`: the state of the caches and the kind of launches, in any order."""
    words = text.replace(" ", "").split(",")
    caches, launches = ([word for word in words if word in choices] for choices in (CACHES, LAUNCHES))
    if len(caches) + len(launches) < len(words) or max(len(caches), len(launches)) > 1:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected {' or '.join(CACHES)}, {' or '.join(LAUNCHES)}, "
            "or one of each, such as warm,graph"
        )
    return CallMode("".join(caches), "".join(launches))


def seconds(text: str) -> float:
    """Parse a positive number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= MAX_SEARCH_S:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a positive number of seconds, at most a day")
    return number


def at_least(least: int) -> Callable[[str], int]:
    """Make a parser of whole numbers that are not smaller than `least`."""

    def whole(text: str) -> int:
        number = int(text) if re.fullmatch("-?[0-9]{1,18}", text) else least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of at least {least}")
        return number

    return whole


def seed(text: str) -> int:
    """Parse a seed that every library accepts."""
    number = at_least(0)(text)
    if number > MAX_SEED:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number of at most {MAX_SEED}")
    return number


def figure_file(text: str) -> Path:
    """Parse a figure's file; raises InputError for another kind, and WriteError if it cannot be written."""
    path = Path(text)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{text}: expected a name that ends with {' or '.join(SUFFIXES)}")
    folder = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise WriteError(f"{text}: cannot be written; name a file in a folder that you may write to")
    return path
