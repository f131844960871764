"""Compile a space for architectures that need not be there: registers, spills, occupancy, what cannot run."""

from __future__ import annotations

import argparse

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.errors import SetupError

EXAMPLE = "autotune feasible spaces/reduce.yaml --architectures sm_75,sm_90 --budget 100"
_ARCHITECTURES = "sm_75,sm_80,sm_90,sm_100"
_BUDGET = 200


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    opt.add_space(parser)
    opt.add_problem(parser)
    parser.add_argument(
        "--architectures",
        metavar="A,B",
        default=_ARCHITECTURES,
        help="NVIDIA architectures, separated by commas (default %(default)s)",
    )
    parser.add_argument(
        "--budget",
        metavar="N|all",
        type=_budget,
        default=_BUDGET,
        help="how many to compile for each: the default and a random sample; or all (default %(default)s)",
    )
    parser.add_argument("--seed", type=opt.seed, default=0, help="seed of the sample (default %(default)s)")
    opt.add_compiling(parser)
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the command; raises SetupError when the default configuration cannot run everywhere."""
    from autotune import occupancy
    from autotune.binary_cache import default_folder
    from autotune.feasible import Settings, survey
    from autotune.progress import SurveyProgress
    from autotune.report.feasible import failures_table, survey_json, survey_table
    from autotune.report.tables import console
    from autotune.targets import Target

    names = dict.fromkeys(filter(None, parsed.architectures.replace(",", " ").split()))
    architectures = [occupancy.architecture(name) for name in names or [""]]
    settings = Settings(
        count=parsed.budget,
        seed=parsed.seed,
        timeout_s=parsed.compile_timeout,
        workers=parsed.workers,
        kept=default_folder() if parsed.binary_cache else None,
    )
    target = Target(parsed.space, None, opt.sizes(parsed), parsed.dtype)
    with SurveyProgress() as progress:
        surveys = survey(target, architectures, settings, progress)
    if parsed.json:
        emit([survey_json(item) for item in surveys])
    else:
        out, failures = console(), failures_table(surveys)
        out.print(survey_table(surveys))
        if failures is not None:
            out.print()
            out.print(failures)
    for item in surveys:
        default = item.checked[0] if item.checked else None
        if default is not None and default.failure is not None:
            raise SetupError(
                f"the default configuration cannot run on {item.architecture.name}: {default.failure.detail}"
            )


def _budget(text: str) -> int | None:
    try:
        return None if text == "all" else opt.at_least(1)(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or all") from None
