"""List and filter the trials of a search, or say which parameters matter."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from autotune.cli import options as opt
from autotune.cli.device_use import COLUMNS, DeviceUse, uses_of_journal
from autotune.cli.output import emit, say
from autotune.cli.tables import Table, cell, table
from autotune.core.escapes import csv_text
from autotune.core.expressions import Expression, parse
from autotune.core.records import Value
from autotune.core.text import count_text, hint, nearest
from autotune.core.trials import Measurement, Status, Trial, pareto_front
from autotune.errors import ExpressionError, InputError
from autotune.space.yaml_advice import expression_advice

if TYPE_CHECKING:  # loads numpy
    from autotune.analysis.importance import Importance

EXAMPLE = "autotune show reduce --where 'BLOCK_SIZE >= 256' --limit 20"
MIN_SHARE = 0.01  # pairs with a smaller share get no row
_MEASURED = ("compile_ms", "cost_s", "registers", "spill_bytes", "shared_bytes")  # columns of a CSV file
POOR_FIT = 0.5  # share of explained variance below which the table says so


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "journal",
        nargs="+",
        type=opt.results,
        help="a journal, such as a file in runs/, or a kernel's name for the newest of its journals there; "
        "several are shown together",
    )
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
        help="sort by time (the fastest of the last round first), order (as tried) or a parameter "
        "(default %(default)s)",
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
    parser.add_argument(
        "--csv", metavar="FILE", type=Path, help="write the selected trials to a CSV file instead"
    )
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    from autotune.analysis.find_journal import find_journal
    from autotune.evaluation.journal_rows import encode_trial
    from autotune.interop.files import require_own_kind, write_text

    if parsed.csv is not None:
        require_own_kind(parsed.csv, "a CSV file", (".csv",), "--csv")
    journals = [find_journal(name) for name in parsed.journal]
    if parsed.importance and len(journals) > 1:
        raise InputError("--importance: trials of several journals cannot be compared; name one journal")
    several = len(journals) > 1
    rows = [row for journal in journals for row in _trial_rows(journal, with_finals=not parsed.importance)]
    chosen = _selected_rows(rows, parsed)
    if parsed.importance:
        _show_importance([row.trial for row in chosen], parsed.json)
    elif parsed.csv is not None:
        write_text(parsed.csv, trials_csv(chosen))
        say(f"{_share_text(chosen, rows)} in {parsed.csv}")
    elif parsed.json:
        emit([encode_trial(row.trial) | ({"journal": str(row.journal)} if several else {}) for row in chosen])
    else:
        uses = {journal: uses_of_journal(journal) for journal in journals}
        shown = [row._replace(use=uses[row.journal].get(row.trial.config, DeviceUse())) for row in chosen]
        emit(trials_table(shown, with_journal=several))
        was_named = journals == [Path(name) for name in parsed.journal]
        of = "" if was_named else f" of {', '.join(map(str, journals))}"
        say(f"{_share_text(chosen, rows)}{of}")


class TrialRow(NamedTuple):
    """A trial, its journal, and further columns of a table."""

    journal: Path
    trial: Trial
    is_fastest: bool = False  # of the last round
    use: DeviceUse = DeviceUse()


def _trial_rows(journal: Path, *, with_finals: bool) -> list[TrialRow]:
    """The trials of a journal, with the times of its last round if requested."""
    from autotune.evaluation.journal import read_journal

    _, trials, last_round, *_ = read_journal(journal)
    finals = last_round.measurements if with_finals else {}
    fastest = min(finals, key=lambda key: finals[key].median_ms, default="")
    return [_trial_row(journal, trial, finals.get(trial.key), fastest) for trial in trials]


def _share_text(chosen: Sequence[TrialRow], rows: Sequence[TrialRow]) -> str:
    return f"{len(chosen)} of {count_text(len(rows), 'trial')}"


def _trial_row(journal: Path, trial: Trial, final: Measurement | None, fastest: str) -> TrialRow:
    """The trial with its measurement of the last round, if it took part; the fastest is marked."""
    if final is None or trial.time_ms is None:
        return TrialRow(journal, trial)
    is_fastest = trial.key == fastest
    mark = "the fastest of the last round" if is_fastest else ""
    note = "; ".join(filter(None, (mark, trial.note)))
    return TrialRow(journal, replace(trial, measurement=final, note=note), is_fastest)


def _show_importance(trials: Sequence[Trial], as_json: bool) -> None:
    from autotune.analysis.importance import importance

    shares = importance(trials)
    if as_json:
        emit(importance_json(shares))
    else:
        emit(importance_table(shares))
        say(importance_note(shares))


def importance_table(shares: Importance) -> Table:
    """Make a table with a row for each parameter and each pair that matters."""
    rows = [(name, f"{share:.1%}") for name, share in shares.single.items()]
    rows += [
        (f"{left} x {right}", f"{share:.1%}")
        for (left, right), share in shares.pairs.items()
        if share >= MIN_SHARE
    ]
    return table(("parameter", "share of the variance of log time"), rows)


def importance_note(shares: Importance) -> str:
    """A note on how far the table can be trusted."""
    doubt = "; that is poor: try more configurations" if shares.fit < POOR_FIT else ""
    fit = f"the model explains {shares.fit:.0%} of the variance of unseen trials"
    return f"from {shares.trials} trials; {fit}{doubt}"


def importance_json(shares: Importance) -> dict[str, Any]:
    return {
        "trials": shares.trials,
        "fit": shares.fit,
        "parameters": dict(shares.single),
        "pairs": [{"parameters": list(pair), "share": share} for pair, share in shares.pairs.items()],
    }


def _rows_on_front(rows: Sequence[TrialRow]) -> list[TrialRow]:
    front = [config for config, _, _ in pareto_front([row.trial for row in rows])]
    if not front:
        raise InputError(
            "--pareto: no energies in these trials; search with --objective energy, edp or pareto"
        )
    return [row for row in rows if row.trial.config in front]


def _condition(text: str) -> Expression:
    try:
        return parse(text)
    except ExpressionError as error:
        mend = expression_advice(text, "", {}) or "; expected one such as 'BLOCK_SIZE >= 256'"
        raise InputError(f"--where: {error}{mend}") from None


def _selected_rows(rows: Sequence[TrialRow], parsed: argparse.Namespace) -> list[TrialRow]:
    """Filter and sort the trials as the options say."""
    chosen = [row for row in rows if parsed.status in (None, row.trial.status.value)]
    if parsed.pareto:
        chosen = _rows_on_front(chosen)
    names = {name for row in rows for name in row.trial.config}
    if parsed.where is not None:
        condition = _condition(parsed.where)
        if rows and (unknown := condition.names - names):
            raise InputError(f"--where: unknown name {min(unknown)!r}{hint(min(unknown), names)}")
        chosen = [row for row in chosen if condition.names <= set(row.trial.config)]
        chosen = [row for row in chosen if condition(row.trial.config)]
    if parsed.sort == "time":
        chosen.sort(key=_time_key)
    elif parsed.sort != "order":
        if parsed.sort not in names:
            near = nearest(parsed.sort, {"time", "order", *names})
            raise InputError(f"--sort {parsed.sort}: expected time, order or the name of a parameter{near}")
        chosen.sort(key=lambda row: _sort_key(row.trial.config.get(parsed.sort)))
    return chosen[: parsed.limit]


def _time_key(row: TrialRow) -> tuple[bool, float]:
    """The last round's fastest first: times of the search may be lower by luck."""
    return (not row.is_fastest, math.inf if row.trial.time_ms is None else row.trial.time_ms)


def _sort_key(value: Value | None) -> tuple[int, Value]:
    """Numbers first, then names, then trials without the parameter."""
    return (2, 0) if value is None else (int(isinstance(value, str)), value)


def trials_table(rows: Sequence[TrialRow], *, with_journal: bool = False) -> Table:
    """Make a table with a column per parameter, and with energy, resources and occupancy if known."""
    names = list(dict.fromkeys(name for row in rows for name in row.trial.config))
    columns = ("ms", "J", "status", *names, "registers", "spill", *COLUMNS, "journal", "detail")
    cells = [
        (
            cell(trial.time_ms),
            cell(trial.measurement.energy_j if trial.measurement else None),
            trial.status.value,
            *(str(trial.config.get(name, "")) for name in names),
            cell(trial.registers, "{}"),
            cell(trial.spill_bytes, "{}"),
            *use.cells,
            journal.name if with_journal else "",
            _detail_cell(trial),
        )
        for journal, trial, _, use in rows
    ]
    return table(columns, cells, optional=("J", "registers", "spill", *COLUMNS, "journal"))


def _detail_cell(trial: Trial) -> str:
    line = trial.detail.splitlines()[0] if trial.detail else ""
    return f"last round: {line}" if trial.failed_last_round else line


def trials_csv(rows: Sequence[TrialRow]) -> str:
    """The trials with their journals as CSV with a header line; what is unknown is empty."""
    names = list(dict.fromkeys(name for row in rows for name in row.trial.config))
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["journal", *names, "status", "time_ms", "energy_j", "samples", *_MEASURED, "detail"])
    for journal, trial, *_ in rows:
        measurement = trial.measurement
        cells = (
            str(journal),
            *(trial.config.get(name) for name in names),
            trial.status.value,
            trial.time_ms,
            measurement.energy_j if measurement else None,
            len(measurement.samples_ms) if measurement else 0,
            *(getattr(trial, name) for name in _MEASURED),
            trial.detail,
        )
        writer.writerow(csv_text(cell) if isinstance(cell, str) else cell for cell in cells)
    return text.getvalue()
