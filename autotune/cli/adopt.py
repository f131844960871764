"""Adopt what other devices or sizes know: a result from a few runs, where there is none yet."""

from __future__ import annotations

import argparse
from typing import Any

from autotune.cli import options as opt
from autotune.cli._tables import problem_text
from autotune.cli.output import emit
from autotune.core.records import Entry
from autotune.core.trials import Budget
from autotune.tuning.task import TuningTask

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
    from autotune.cli._search_summary import result_json, result_text
    from autotune.cli.progress import SearchProgress
    from autotune.tuning.adopt import adopt, searched
    from autotune.tuning.context import get_ready
    from autotune.tuning.task import bind_target

    get_ready(parsed.device, parsed.workers)
    task = bind_target(opt.target(parsed))
    known = searched(task, parsed.cache)
    if known is not None:
        emit(known_json(known) if parsed.json else known_text(task, known))
        return
    options = opt.run_options(parsed, budget=Budget(trials=parsed.runs + 1))  # the default is tried first
    with SearchProgress() as progress:
        result = adopt(task, options, progress)
    emit(result_json(result) | {"adopted": True} if parsed.json else result_text(result))


def known_text(task: TuningTask, entry: Entry) -> str:
    """That nothing was run, and why."""
    origin = entry.provenance
    return (
        f"{task.spec.kernel} on {task.device.name}, {problem_text(task.space)}: tuned already, with "
        f"{origin.trials} trials of {origin.engine}{entry.caveat}; nothing was run\n"
        f"best    {entry.time_ms:.4g} ms: {entry.config}"
    )


def known_json(entry: Entry) -> dict[str, Any]:
    """The same for scripts."""
    return {"adopted": False, "config": dict(entry.config), "time_ms": entry.time_ms}
