"""Adopt what other devices or sizes know: a result from a few runs, where there is none yet."""

from __future__ import annotations

import argparse

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.trials import Budget

EXAMPLE = "autotune adopt reduce --size n=1000000"
RUNS = 10  # beside the default


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    opt.add_target(parser)
    parser.add_argument(
        "--runs",
        metavar="N",
        type=opt.at_least(1),
        default=RUNS,
        help="configurations to try beside the default (default %(default)s)",
    )
    opt.add_run(parser)
    opt.add_cache(parser, "where results are looked for, and kept in the first of them")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from autotune.adopt import adopt, searched
    from autotune.progress import SearchProgress
    from autotune.report.adopt import known_json, known_text
    from autotune.report.search import result_json, result_text
    from autotune.rig import get_ready
    from autotune.targets import bind_target

    get_ready(parsed.device, parsed.workers)
    bound = bind_target(opt.target(parsed))
    known = searched(bound, parsed.cache)
    if known is not None:
        emit(known_json(known) if parsed.json else known_text(bound, known))
        return
    options = opt.run_options(parsed, budget=Budget(trials=parsed.runs + 1))  # the default is tried first
    with SearchProgress() as progress:
        result = adopt(bound, options, progress)
    emit(result_json(result) | {"adopted": True} if parsed.json else result_text(result))
