"""Show the trials of a journal."""

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
from autotune.core.trials import Measurement, Status, Trial
from autotune.errors import ExpressionError, InputError

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
    from autotune.cli._tables import console
    from autotune.evaluation.journal import read_last_round, read_trials
    from autotune.evaluation.journal_rows import encode_trial

    trials = read_trials(parsed.journal)
    if parsed.importance:
        _show_importance(_select(trials, parsed), parsed.json)
        return
    finals = read_last_round(parsed.journal)
    chosen = _select([_decided(trial, finals) for trial in trials], parsed)
    if parsed.json:
        emit([encode_trial(trial) for trial in chosen])
    else:
        console().print(trials_table(chosen))
        print(f"{len(chosen)} of {len(trials)} trials", file=sys.stderr)


def _decided(trial: Trial, finals: Mapping[str, Measurement]) -> Trial:
    """A trial with its time of the last round, which counts before the search's; the fastest says so."""
    final = finals.get(trial.key)
    if final is None or trial.time_ms is None:
        return trial
    fastest = min(finals.values(), key=lambda measured: measured.median_ms)
    words = "the fastest of the last round" if final is fastest else ""
    return replace(trial, measurement=final, detail="; ".join(filter(None, (words, trial.detail))))


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
    from autotune.core.trials import pareto_front

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


def trials_table(trials: Sequence[Trial]) -> Table:
    """Trials with one column per parameter, and what their binaries take where that is known."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.config))
    resources = ("registers", "spill_bytes") if any(trial.registers for trial in trials) else ()
    energies = any(trial.measurement and trial.measurement.energy_j is not None for trial in trials)
    rows = [
        (
            f"{trial.time_ms:.4g}" if trial.time_ms is not None else "-",
            *([_energy(trial)] if energies else []),
            trial.status.value,
            *(str(trial.config.get(name, "")) for name in names),
            *(_known(getattr(trial, name)) for name in resources),
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


def _known(value: int | None) -> str:
    return "-" if value is None else str(value)
