"""How much a search loses when several evaluations are under way at the same time, on recorded spaces.

    python benchmarks/parallel_quality.py FILE... [--seeds N] [--processes N]

Prints P400, the score until 400 evaluations (0: random search, 1: the optimum at once), by the number of
evaluations under way. The default search proposes; trials end as long after they began as was recorded.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import mean

from replay import load, replay
from replay_score import AXIS_EVALUATIONS, efficiency

from autotune.searchers import make_searcher

PARALLEL = (1, 4, 16, 64)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="recorded spaces: T4 or Kernel Tuner's cache")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--engine", default="surrogate", help="an engine, or engine:strategy")
    parsed = parser.parse_args()
    columns = []
    print("| space | " + " | ".join(f"{count} under way" for count in PARALLEL) + " |")
    print("|---" * (len(PARALLEL) + 1) + "|", flush=True)
    with ProcessPoolExecutor(parsed.processes) as pool:
        for file in parsed.files:
            work = partial(score, file, parsed.engine, parsed.seeds)
            scores = list(pool.map(work, PARALLEL))
            columns.append(scores)
            print(
                f"| {load(file).name} | " + " | ".join(f"{value:.3f}" for value in scores) + " |", flush=True
            )
    means = [mean(column) for column in zip(*columns, strict=True)]
    print(row("mean", means))


def row(name: str, values: Sequence[float]) -> str:
    """One line of the table."""
    return f"| {name} | " + " | ".join(f"{value:.3f}" for value in values) + " |"


def score(file: Path, engine: str, seeds: int, parallel: int) -> float:
    """P400 of searches with these seeds."""
    name, _, strategy = engine.partition(":")
    recorded = load(file)
    runs = [
        replay(
            recorded,
            make_searcher(name, strategy or None),
            budget=AXIS_EVALUATIONS,
            seed=seed,
            parallel=parallel,
        )
        for seed in range(seeds)
    ]
    return efficiency(recorded, runs).p400


if __name__ == "__main__":
    main()
