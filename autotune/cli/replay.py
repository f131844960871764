"""Replay a search on recorded results: at once, without a device, and scored against random search."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.rig import Options
from autotune.searchers import engine_names
from autotune.trials import Budget

EXAMPLE = "autotune replay runs/FILE.jsonl --engine optuna --strategy tpe --budget 200"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="recorded results: a journal, T4 results or a Kernel Tuner cache, gzipped or not",
    )
    parser.add_argument(
        "--engine", choices=engine_names(), help="who chooses what to try (default: as in search)"
    )
    parser.add_argument("--strategy", metavar="NAME", help="the engine's strategy (default: its first)")
    parser.add_argument(
        "--budget",
        metavar="N",
        type=opt.at_least(1),
        default=400,
        help="configurations to evaluate (default %(default)s)",
    )
    parser.add_argument(
        "--seeds",
        metavar="K",
        type=opt.at_least(1),
        default=10,
        help="searches of each file (default %(default)s)",
    )
    parser.add_argument(
        "--priors",
        metavar="N",
        type=opt.at_least(0),
        help="let each search know N random results of its kernel on the other files' devices; 0: all",
    )
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from autotune.efficiency import efficiency
    from autotune.replay import load, priors_for, replay
    from autotune.report.replay import efficiency_json, efficiency_table
    from autotune.report.tables import console
    from autotune.searchers import default_strategy, make_searcher
    from autotune.session import choose_engine

    scores = []
    files = [load(path) for path in parsed.files]
    for recorded in files:
        priors = () if parsed.priors is None else priors_for(recorded, files, parsed.priors)
        engine, strategy = choose_engine(_options(parsed), len(recorded.space))
        runs = []
        for seed in range(parsed.seeds):
            searcher = make_searcher(engine, strategy, priors=priors)
            runs.append(replay(recorded, searcher, budget=parsed.budget, seed=seed))
            print(f"{recorded.name}: seed {seed + 1} of {parsed.seeds}", file=sys.stderr)
        label = ":".join(filter(None, (engine, strategy or default_strategy(engine))))
        scores.append((label, efficiency(recorded, runs)))
    if parsed.json:
        emit([efficiency_json(*score) for score in scores])
    else:
        console().print(efficiency_table(scores))


def _options(parsed: argparse.Namespace) -> Options:
    """What decides on the engine when none is named: the same as in a search."""
    return Options(engine=parsed.engine, strategy=parsed.strategy, budget=Budget(trials=parsed.budget))
