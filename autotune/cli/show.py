"""Show the trials of a journal."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.errors import ExpressionError, InputError
from autotune.expressions import Expression, parse
from autotune.suggestions import hint
from autotune.trials import Status, Trial

EXAMPLE = "autotune show runs/FILE.jsonl --where 'BLOCK_SIZE >= 256' --limit 20"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("journal", type=Path, help="a file of runs/")
    parser.add_argument(
        "--status", choices=[status.value for status in Status], help="only trials that ended so"
    )
    parser.add_argument("--where", metavar="EXPRESSION", help="only configurations for which this holds")
    parser.add_argument(
        "--sort", metavar="NAME", default="time", help="time, order, or a parameter (default %(default)s)"
    )
    parser.add_argument("--limit", metavar="N", type=opt.at_least(1), help="the first N only")
    parser.add_argument(
        "--importance", action="store_true", help="which parameters decide on the time, alone or in pairs"
    )
    parser.add_argument(
        "--pareto",
        action="store_true",
        help="only configurations that no other beats in time and energy, of a search for both",
    )
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from autotune.journal import encode_trial, read_trials
    from autotune.report.tables import console
    from autotune.report.trials import trials_table

    trials = read_trials(parsed.journal)
    chosen = _select(trials, parsed)
    if parsed.importance:
        _show_importance(chosen, parsed.json)
        return
    if parsed.json:
        emit([encode_trial(trial) for trial in chosen])
    else:
        console().print(trials_table(chosen))
        print(f"{len(chosen)} of {len(trials)} trials", file=sys.stderr)


def _show_importance(trials: Sequence[Trial], as_json: bool) -> None:
    from autotune.importance import importance
    from autotune.report.importance import importance_json, importance_note, importance_table
    from autotune.report.tables import console

    found = importance(trials)
    if as_json:
        emit(importance_json(found))
    else:
        console().print(importance_table(found))
        print(importance_note(found), file=sys.stderr)


def _front(trials: Sequence[Trial], journal: Path) -> list[Trial]:
    from autotune.pareto import pareto_front

    front = [config for config, _, _ in pareto_front(trials)]
    if not front:
        raise InputError(f"{journal}: no energies; search with --objective energy, edp or pareto")
    return [trial for trial in trials if trial.config in front]


def _condition(text: str) -> Expression:
    try:
        return parse(text)
    except ExpressionError as error:
        raise InputError(f"--where: {error}; expected one such as 'BLOCK_SIZE >= 256'") from None


def _select(trials: Sequence[Trial], parsed: argparse.Namespace) -> list[Trial]:
    """Filter and sort the trials as `show` was asked to."""
    chosen = [trial for trial in trials if parsed.status in (None, trial.status.value)]
    if parsed.pareto:
        chosen = _front(chosen, parsed.journal)
    if parsed.where is not None:
        condition = _condition(parsed.where)
        known = {name for trial in trials for name in trial.config}
        if unknown := condition.names - known:
            raise InputError(f"--where: unknown name {min(unknown)!r}{hint(min(unknown), known)}")
        chosen = [trial for trial in chosen if condition(trial.config)]
    if parsed.sort == "time":
        chosen.sort(key=lambda trial: math.inf if trial.time_ms is None else trial.time_ms)
    elif parsed.sort != "order":
        if any(parsed.sort not in trial.config for trial in trials):
            raise InputError(f"--sort {parsed.sort}: expected time, order or the name of a parameter")
        chosen.sort(key=lambda trial: (isinstance(trial.config[parsed.sort], str), trial.config[parsed.sort]))
    return chosen[: parsed.limit]
