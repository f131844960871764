"""How true the stopping estimates of searches are, on recordings of whole spaces.

    python benchmarks/stopping_estimate.py FOLDER [--seeds N]

FOLDER has a folder per kernel with a recording of a whole space per GPU, `<GPU>_T4.json.gz`. Searches are
replayed on each, and estimates are made after some numbers of trials. Estimated and true savings are those of
trying everything, means over the seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
from replay import Recorded, load, replay

from autotune.searchers import make_searcher
from autotune.searchers.base import FASTER
from autotune.searchers.surrogate import stopping_estimate

ENGINES = ("surrogate", "random")
TRIALS = (20, 30, 50, 100, 200, 300)
PROBABILITIES = (0.01, 0.1, 0.5, 0.9, 1.01)


@dataclass(frozen=True)
class Estimate:
    """An estimate after some trials of a search, and the true saving."""

    space: str
    engine: str
    trials: int
    probability: float
    saving: float
    true_saving: float


def main() -> None:
    """Print two tables in Markdown."""
    parser = argparse.ArgumentParser(
        description="Compare the stopping estimates of searches with recordings."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=6)
    options = parser.parse_args()
    spaces = [load(path) for path in sorted(options.folder.glob("*/*_T4.json.gz"))]
    estimates = [
        estimate
        for recorded in spaces
        for engine in ENGINES
        for seed in range(options.seeds)
        for estimate in estimated(recorded, engine, seed)
    ]
    print("\n".join((*savings(estimates), "", *probabilities(estimates))))


def estimated(recorded: Recorded, engine: str, seed: int) -> Iterator[Estimate]:
    """The estimates of one search."""
    rows = replay(recorded, make_searcher(engine), budget=TRIALS[-1], seed=seed).rows
    best_ms = np.nanmin(recorded.times_ms)
    for count in TRIALS:
        tried = list(rows[:count])
        found = stopping_estimate(recorded.space, [recorded.trials[row] for row in tried])
        probability, saving = found.improvement_probability, found.expected_improvement
        if probability is not None and saving is not None:
            true_saving = 1.0 - best_ms / np.nanmin(recorded.times_ms[tried])
            yield Estimate(recorded.name, engine, count, probability, saving, float(true_saving))


def savings(estimates: Sequence[Estimate]) -> Iterator[str]:
    """Estimated and true savings by space and number of trials."""
    yield "| searcher, space | " + " | ".join(map(str, TRIALS)) + " |"
    yield "|---" * (1 + len(TRIALS)) + "|"
    for engine in ENGINES:
        for space in dict.fromkeys(one.space for one in estimates):
            cells = []
            for count in TRIALS:
                key = engine, space, count
                these = [one for one in estimates if (one.engine, one.space, one.trials) == key]
                cells.append(
                    f"{mean(one.saving for one in these):.1%} / {mean(one.true_saving for one in these):.1%}"
                )
            yield f"| `{engine}`, {space} | " + " | ".join(cells) + " |"


def probabilities(estimates: Sequence[Estimate]) -> Iterator[str]:
    """How often something was faster, by estimated probability."""
    yield "| searcher | probability | times | something was faster |"
    yield "|---|---|---|---|"
    for engine in ENGINES:
        low = 0.0
        for high in PROBABILITIES:
            these = [
                one.true_saving >= FASTER
                for one in estimates
                if one.engine == engine and low <= one.probability < high
            ]
            share = f"{mean(these):.0%}" if these else "-"
            yield f"| `{engine}` | {low:.0%} to {min(high, 1.0):.0%} | {len(these)} | {share} |"
            low = high


if __name__ == "__main__":
    main()
