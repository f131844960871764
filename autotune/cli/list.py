"""List stored results and journals: kernels, devices, problems, ages, and what is stale.

With --stale, list only results of another driver, compiler, version of Triton or source than this machine has
now or the cache knows of; `autotune check KERNEL --stale` times them again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.cli.tables import Table, cell, table
from autotune.core.runs_folder import RUNS
from autotune.core.text import nearest, problem_text, table_sizes
from autotune.core.trials import Objective
from autotune.errors import InputError

if TYPE_CHECKING:
    from autotune.analysis.inventory import Inventory, JournalSummary, StoredResult

EXAMPLE = "autotune list reduce"
_AGES = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))  # seconds per unit, longest first


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kernel", nargs="?", type=opt.kernel, help="list only the kernel of this name, space file or journal"
    )
    opt.add_cache(parser, "the cache to list")
    parser.add_argument(
        "--journals",
        metavar="DIR",
        type=Path,
        default=RUNS,
        help="the folder of journals (default %(default)s)",
    )
    parser.add_argument("--stale", action="store_true", help="list only results of other tools or sources")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    from autotune.analysis.inventory import inventory, only_stale
    from autotune.serving.cache import read_roots

    if parsed.journals != RUNS and not parsed.journals.is_dir():
        raise InputError(f"--journals {parsed.journals}: no such folder")
    roots = read_roots(parsed.cache)
    stored = inventory(roots, parsed.journals, parsed.kernel)
    if parsed.stale:
        stored = replace(stored, results=only_stale(stored.results), journals=())
    if parsed.json:
        emit(inventory_json(stored))
        return
    now_s = time.time()
    by_cache = groupby(stored.results, lambda result: result.cache)
    tables = [results_table([*results], now_s) for _, results in by_cache]
    tables += [journals_table(stored.journals, now_s)] if stored.journals else []
    for number, drawn in enumerate(tables):
        emit(*([""] if number else []), drawn)
    if parsed.stale and not stored.results:
        emit("nothing is stale")
    elif not (stored.results or stored.journals):
        of = f" of {parsed.kernel}" if parsed.kernel else ""
        near = nearest(parsed.kernel or "", stored.kernels)
        emit(
            f"nothing{of} in {' or '.join(roots)}, no journals{of} in {parsed.journals}"
            f"{near or '; run autotune search'}"
        )
    stale = dict.fromkeys(_stale_line(result) for result in stored.results if result.stale)
    if stale:
        emit(*stale, "`autotune check KERNEL --stale` times the stale results of this machine's device again")
    emit(*(f"skipped {reason}" for reason in stored.unreadable))


def _stale_line(result: StoredResult) -> str:
    entry, reasons = result.entry, "; ".join(reason.rstrip(".") for reason in result.stale)
    problem = problem_text(entry.sizes, entry.dtype, entry.data)
    return f"stale {result.kernel} on {result.device}, {problem}: {reasons}"


def results_table(results: Sequence[StoredResult], now_s: float) -> Table:
    """Make a table of the stored results of one cache, the latest first."""
    columns = ("kernel", "device", "problem", "objective", "ms", "age", "trials")
    with_objective = any(result.objective != Objective.TIME.value for result in results)
    rows = [
        (
            result.kernel,
            result.device,
            problem_text(result.entry.sizes, result.entry.dtype, result.entry.data),
            result.objective if with_objective else "",
            f"{result.entry.time_ms:.4g}",
            age_text(now_s - _tuned_at_s(result)),
            f"{result.entry.provenance.trials:,}",
        )
        for result in sorted(results, key=lambda result: (-_tuned_at_s(result), result.kernel))
    ]
    return table(columns, rows, optional=("objective",), title=f"results in {results[0].cache}")


def _tuned_at_s(result: StoredResult) -> float:
    """When it was measured, in seconds since the epoch."""
    return datetime.fromisoformat(result.entry.provenance.tuned_at).timestamp()


def journals_table(journals: Sequence[JournalSummary], now_s: float) -> Table:
    rows = [
        (
            str(journal.path),
            journal.device,
            table_sizes(journal.sizes),
            journal.dtype,
            f"{journal.trials:,}",
            f"{journal.failed:,}",
            cell(journal.best_ms),
            age_text(now_s - journal.written_at),
        )
        for journal in journals
    ]
    return table(("journal", "device", "sizes", "dtype", "trials", "failed", "best ms", "age"), rows)


def inventory_json(stored: Inventory) -> dict[str, Any]:
    return {
        "results": [
            {
                "cache": result.cache,
                "device": result.device,
                "kernel": result.kernel,
                "objective": result.objective,
                "sizes": dict(result.entry.sizes),
                "dtype": result.entry.dtype,
                "config": dict(result.entry.config),
                "time_ms": result.entry.time_ms,
                "tuned_at": result.entry.provenance.tuned_at,
                "engine": result.entry.provenance.engine,
                "trials": result.entry.provenance.trials,
                "stale": list(result.stale),
            }
            for result in stored.results
        ],
        "journals": [
            {
                **{name: value for name, value in asdict(journal).items() if name != "is_concluded"},
                "path": str(journal.path),
                "written_at": datetime.fromtimestamp(journal.written_at, UTC).isoformat(timespec="seconds"),
            }
            for journal in stored.journals
        ],
        "unreadable": list(stored.unreadable),
    }


def age_text(age_s: float) -> str:
    """An age in its largest unit: `3 d`, `5 h`, `12 min`, `0 min`."""
    seconds, unit = next((row for row in _AGES if age_s >= row[0]), _AGES[-1])
    return f"{max(0, int(age_s / seconds))} {unit}"
