"""Replay a search on recorded results, without a device, and score it against random search."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from autotune.analysis.replay import load, priors_for, replay
from autotune.analysis.replay_score import CHECKPOINTS, MARGINS, Efficiency, efficiency
from autotune.cli import options as opt
from autotune.cli.output import emit, say
from autotune.cli.tables import cell, table
from autotune.core.trials import Budget
from autotune.searchers import default_strategy, engine_names, make_searcher
from autotune.tuning.options import Options

EXAMPLE = "autotune replay runs/FILE.jsonl --engine optuna --budget 200"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="recorded results: a journal, T4 results or a Kernel Tuner cache; may be gzipped",
    )
    parser.add_argument(
        "--engine",
        choices=engine_names(),
        metavar="ENGINE",
        help="as for search, such as random",
    )
    parser.add_argument("--strategy", metavar="NAME", help="strategy of the engine (default: its first)")
    parser.add_argument(
        "--budget",
        metavar="N",
        type=opt.at_least(1),
        default=400,
        help="configurations to evaluate in each search (default %(default)s)",
    )
    parser.add_argument(
        "--seeds",
        metavar="K",
        type=opt.at_least(1),
        default=10,
        help="number of searches of each file (default %(default)s)",
    )
    parser.add_argument(
        "--priors",
        metavar="N",
        type=opt.at_least(0),
        help="start each search from N random results of its kernel in each other file; 0 means all",
    )
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    from autotune.tuning.tuner import choose_engine

    options = Options(engine=parsed.engine, strategy=parsed.strategy, budget=Budget(trials=parsed.budget))
    scores = []
    files = [load(path) for path in parsed.files]
    for recorded in files:
        priors = () if parsed.priors is None else priors_for(recorded, files, parsed.priors)
        engine, strategy = choose_engine(options, len(recorded.space))
        runs = []
        for seed in range(parsed.seeds):
            searcher = make_searcher(engine, strategy, priors=priors)
            runs.append(replay(recorded, searcher, budget=parsed.budget, seed=seed))
            say(f"{recorded.name}: seed {seed + 1} of {parsed.seeds}")
        label = ":".join(filter(None, (engine, strategy or default_strategy(engine))))
        scores.append((label, efficiency(recorded, runs)))
    if parsed.json:
        emit([efficiency_json(*score) for score in scores])
    else:
        emit(table(COLUMNS, efficiency_rows(scores)))


COLUMNS = (
    "searcher",
    "space",
    "P",
    "P400",
    *(f"best@{count}" for count in CHECKPOINTS),
    *(f"to {margin}%" for margin in MARGINS),
    "failing",
    "thinking ms",
)


def efficiency_rows(scores: Sequence[tuple[str, Efficiency]]) -> list[tuple[str, ...]]:
    """The table's cells: a row for each searcher and space, and a row of means for each searcher.

    In a row of means `to N%` is the median over the spaces, or - if there is none.
    """
    rows: list[tuple[str, ...]] = []
    for searcher in dict.fromkeys(name for name, _ in scores):
        own = [score for name, score in scores if name == searcher]
        rows += [_row(searcher, score) for score in own]
        if len(own) > 1:
            rows.append(_row(searcher, _mean(own)))
    return rows


def efficiency_json(searcher: str, score: Efficiency) -> dict[str, Any]:
    """A score as JSON values; infinities are null."""
    return {
        "searcher": searcher,
        "space": score.space,
        "seeds": score.runs,
        "p": _finite(score.p),
        "p400": _finite(score.p400),
        "found": {str(count): value for count, value in score.found.items()},
        "evaluations_to_percent": {str(margin): value for margin, value in score.needed.items()},
        "evaluations": score.evaluations,
        "failing": score.failing,
        "thinking_ms": score.thinking_ms,
    }


def _mean(scores: Sequence[Efficiency]) -> Efficiency:
    needed = {margin: median(score.needed[margin] or math.inf for score in scores) for margin in MARGINS}
    return Efficiency(
        space="mean",
        runs=scores[0].runs,
        p=mean(score.p for score in scores),
        p400=mean(score.p400 for score in scores),
        found={
            count: mean(score.found[count] for score in scores)
            for count in CHECKPOINTS
            if all(count in score.found for score in scores)
        },
        needed={margin: value if math.isfinite(value) else None for margin, value in needed.items()},
        evaluations=mean(score.evaluations for score in scores),
        failing=mean(score.failing for score in scores),
        thinking_ms=mean(score.thinking_ms for score in scores),
    )


def _row(searcher: str, score: Efficiency) -> tuple[str, ...]:
    return (
        searcher,
        score.space,
        f"{score.p:.2f}",
        f"{score.p400:.2f}",
        *(cell(score.found.get(count), "{:.2f}") for count in CHECKPOINTS),
        *(cell(value, "{:,.0f}") for value in score.needed.values()),
        f"{score.failing:.0%}",
        f"{score.thinking_ms:.1f}",
    )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
