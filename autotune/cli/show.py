"""List and filter the trials of a search, or say which parameters matter."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.table import Table

from autotune.cli import options as opt
from autotune.cli._tables import table
from autotune.cli.output import emit
from autotune.core.expressions import Expression, parse
from autotune.core.text import hint
from autotune.core.trials import Measurement, Status, Trial, pareto_front
from autotune.errors import ExpressionError, InputError

EXAMPLE = "autotune show runs/FILE.jsonl --where 'BLOCK_SIZE >= 256' --limit 20"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `autotune show`."""
    parser.add_argument("journal", type=Path, help="a journal, such as a file in runs/")
    parser.add_argument(
        "--status",
        metavar="STATUS",
        choices=[status.value for status in Status],
        help=f"only trials with this status: {', '.join(status.value for status in Status)}",
    )
    parser.add_argument("--where", metavar="EXPRESSION", help="only configurations for which this holds")
    parser.add_argument(
        "--sort",
        metavar="NAME",
        default="time",
        help="sort by time, order (as tried) or a parameter (default %(default)s)",
    )
    parser.add_argument("--limit", metavar="N", type=opt.at_least(1), help="only the first N")
    parser.add_argument(
        "--importance",
        action="store_true",
        help="show how much each parameter and pair of parameters influences the time",
    )
    parser.add_argument(
        "--pareto",
        action="store_true",
        help="only the Pareto front of time and energy, if the search measured energy",
    )
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Print the selected trials, or the importance of parameters over them."""
    from autotune.cli._tables import console
    from autotune.evaluation.journal import read_last_round, read_trials
    from autotune.evaluation.journal_rows import encode_trial

    trials = read_trials(parsed.journal)
    if parsed.importance:
        _show_importance(_select(trials, parsed), parsed.json)
        return
    finals = read_last_round(parsed.journal)
    chosen = _select([_with_final(trial, finals) for trial in trials], parsed)
    if parsed.json:
        emit([encode_trial(trial) for trial in chosen])
    else:
        console().print(trials_table(chosen))
        print(f"{len(chosen)} of {len(trials)} trials", file=sys.stderr)


def _with_final(trial: Trial, finals: Mapping[str, Measurement]) -> Trial:
    """The trial with its measurement of the last round, if it took part; the fastest is marked."""
    final = finals.get(trial.key)
    if final is None or trial.time_ms is None:
        return trial
    fastest = min(finals.values(), key=lambda measured: measured.median_ms)
    mark = "the fastest of the last round" if final is fastest else ""
    return replace(trial, measurement=final, detail="; ".join(filter(None, (mark, trial.detail))))


def _show_importance(trials: Sequence[Trial], as_json: bool) -> None:
    from autotune.analysis.importance import importance
    from autotune.cli._importance import importance_json, importance_note, importance_table
    from autotune.cli._tables import console

    found = importance(trials)
    if as_json:
        emit(importance_json(found))
    else:
        console().print(importance_table(found))
        print(importance_note(found), file=sys.stderr)


def _front(trials: Sequence[Trial], journal: Path) -> list[Trial]:
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
    """Filter and sort the trials as the options say."""
    chosen = [trial for trial in trials if parsed.status in (None, trial.status.value)]
    if parsed.pareto:
        chosen = _front(chosen, parsed.journal)
    if parsed.where is not None:
        condition = _condition(parsed.where)
        names = {name for trial in trials for name in trial.config}
        if unknown := condition.names - names:
            raise InputError(f"--where: unknown name {min(unknown)!r}{hint(min(unknown), names)}")
        chosen = [trial for trial in chosen if condition(trial.config)]
    if parsed.sort == "time":
        chosen.sort(key=lambda trial: math.inf if trial.time_ms is None else trial.time_ms)
    elif parsed.sort != "order":
        if any(parsed.sort not in trial.config for trial in trials):
            raise InputError(f"--sort {parsed.sort}: expected time, order or the name of a parameter")
        chosen.sort(key=lambda trial: (isinstance(trial.config[parsed.sort], str), trial.config[parsed.sort]))
    return chosen[: parsed.limit]


def trials_table(trials: Sequence[Trial]) -> Table:
    """Make a table with a column per parameter, and the registers and spills where they are known."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.config))
    resources = ("registers", "spill_bytes") if any(trial.registers for trial in trials) else ()
    energies = any(trial.measurement and trial.measurement.energy_j is not None for trial in trials)
    rows = [
        (
            f"{trial.time_ms:.4g}" if trial.time_ms is not None else "-",
            *([_energy(trial)] if energies else []),
            trial.status.value,
            *(str(trial.config.get(name, "")) for name in names),
            *(_number(getattr(trial, name)) for name in resources),
            _detail(trial),
        )
        for trial in trials
    ]
    titles = (name.removesuffix("_bytes") for name in resources)
    return table(("ms", *(["J"] if energies else []), "status", *names, *titles, "detail"), rows)


def _detail(trial: Trial) -> str:
    first = trial.detail.splitlines()[0] if trial.detail else ""
    return f"last round: {first}" if trial.failed_last_round else first


def _energy(trial: Trial) -> str:
    energy_j = trial.measurement.energy_j if trial.measurement else None
    return "-" if energy_j is None else f"{energy_j:.4g}"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
