"""Every search strategy on recorded results: the project's own, Kernel Tuner's and Optuna's, in one table.

    python benchmarks/search_efficiency.py RECORDED... [--budget 400] [--seeds 10] [--jobs 4] [--markdown]
    python benchmarks/search_efficiency.py RECORDED... --searchers surrogate optuna:tpe --priors 200

Files are journals, T4 results or Kernel Tuner caches of whole spaces; docs/search-efficiency.md explains the
columns. Strategies whose package is not installed are left out and named. With --priors the searchers that
learn from other devices know so many random results of the same kernel in each other file.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from statistics import mean, median

import numpy as np
from replay import Floats, Recorded, load, priors_for, replay
from replay_score import CHECKPOINTS, MARGINS, Efficiency, efficiency

from autotune.cli.output import emit
from autotune.cli.tables import cell, table
from autotune.errors import InputError
from autotune.searchers import engine_names, learns_from_priors, make_searcher, strategy_names

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


def main() -> None:
    """Run every searcher on every file and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--searchers", nargs="+", metavar="ENGINE[:STRATEGY]", help="default: all there are")
    parser.add_argument("--leave-out", nargs="+", default=[], metavar="ENGINE[:STRATEGY]")
    parser.add_argument("--budget", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--priors", type=int, metavar="N", help="0: everything the other files hold")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--markdown", action="store_true", help="one row for each searcher, for the docs")
    asked = parser.parse_args()
    names = [name for name in asked.searchers or every_searcher() if name not in asked.leave_out]
    if asked.priors is not None:
        names = [name for name in names if learns_from_priors(name.partition(":")[0])]
    files = tuple(asked.files)
    scores: list[tuple[str, Efficiency]] = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        running = [
            (name, pool.submit(scored, name, file, files, asked.budget, asked.seeds, asked.priors))
            for name in names
            for file in files
        ]
        for name, future in running:
            scores.append((name, future.result()))
            print(
                f"{name} on {scores[-1][1].space}: P400 {scores[-1][1].p400:.2f}", file=sys.stderr, flush=True
            )
    scores += [("random, calculated", random_expectation(load(file))) for file in files]
    if asked.markdown:
        print(markdown(scores))
    else:
        emit(table(COLUMNS, efficiency_rows(scores)))


def random_expectation(recorded: Recorded) -> Efficiency:
    """The exact expectation of random search without repetition."""
    times = np.sort(recorded.times_ms[np.isfinite(recorded.times_ms)])
    total = len(recorded.times_ms)
    found = {count: _expected_found(times, total, count) for count in CHECKPOINTS if count <= total}
    needed: dict[int, float | None] = {}
    for margin in MARGINS:
        good = int(np.searchsorted(times, times[0] * (1 + margin / 100), side="right"))
        draws, missed = 0, 1.0
        while missed > 0.5:
            missed *= (total - good - draws) / (total - draws)
            draws += 1
        needed[margin] = float(draws)
    failing = 1 - len(times) / total
    return Efficiency(recorded.name, 0, 0.0, 0.0, found, needed, float(total), failing, 0.0)


def _expected_found(times: Floats, total: int, count: int) -> float:
    """Expectation over the best of `count` draws of the optimum's time over its time."""
    better = np.arange(len(times))
    # log probability that none of the `better` ones is drawn, by recursion
    steps = np.log(np.maximum(total - count - better, 1e-300) / (total - better))
    missed = np.exp(np.concatenate([[0.0], np.cumsum(steps)]))
    return float(((missed[:-1] - missed[1:]) * times[0] / times).sum())


def every_searcher() -> list[str]:
    """What can be run here; the space is never covered, so `exhaustive` says nothing."""
    found = []
    for engine in engine_names():
        for strategy in strategy_names(engine) or (None,):
            name = f"{engine}:{strategy}" if strategy else engine
            try:
                make_searcher(engine, strategy)
            except InputError as error:
                print(f"left out: {name}: {error}", file=sys.stderr)
            else:
                found.append(name)
    return [name for name in found if name != "exhaustive"]


def scored(
    name: str, file: Path, files: tuple[Path, ...], budget: int, seeds: int, known: int | None
) -> Efficiency:
    """One searcher on one space, all seeds."""
    warnings.simplefilter("ignore")
    engine, _, strategy = name.partition(":")
    recorded = loaded(file)
    others = [] if known is None else [loaded(other) for other in files]
    priors = priors_for(recorded, others, known or 0)
    runs = [
        replay(recorded, make_searcher(engine, strategy or None, priors=priors), budget=budget, seed=seed)
        for seed in range(seeds)
    ]
    return efficiency(recorded, runs)


@lru_cache
def loaded(file: Path) -> Recorded:
    """A file, read once by each process."""
    return load(file)


def efficiency_rows(scores: list[tuple[str, Efficiency]]) -> list[tuple[str, ...]]:
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


def _mean(scores: list[Efficiency]) -> Efficiency:
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


def markdown(scores: list[tuple[str, Efficiency]]) -> str:
    """The rows of means, best first, with the lowest score of any space."""
    names = list(dict.fromkeys(name for name, _ in scores))
    by_name = {name: [score for other, score in scores if other == name] for name in names}
    names.sort(key=lambda name: -mean(score.p400 for score in by_name[name]))
    head = ("searcher", "P400", "lowest", "P", *COLUMNS[4:])
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    for name in names:
        row = efficiency_rows([(name, score) for score in by_name[name]])[-1]
        lowest = min(score.p400 for score in by_name[name])
        lines.append(" | ".join((f"`{name}`", row[3], f"{lowest:.2f}", row[2], *row[4:])))
    return "\n".join(f"| {line} |" for line in lines)


if __name__ == "__main__":
    main()
