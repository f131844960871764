"""How true the last sentence of a search is: what it says is left to find, beside what recordings hold.

    python benchmarks/outlook.py FOLDER [--seeds N]

FOLDER has a folder per kernel with a recording of a whole space per GPU, `<GPU>_T4.json.gz`. Searches are
replayed on each and asked in between. "said" is the saving that the outlook expects of trying everything,
"true" what the best of the recording would have saved, both means over the seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np

from autotune.analysis.replay import Recorded, load, replay
from autotune.searchers import make_searcher
from autotune.searchers.surrogate import FASTER, stopping_estimate

ENGINES = ("surrogate", "random")
ASKED = (20, 30, 50, 100, 200, 300)
CHANCES = (0.01, 0.1, 0.5, 0.9, 1.01)


@dataclass(frozen=True)
class Answer:
    """What was said after some trials of a search, and what was true."""

    space: str
    engine: str
    trials: int
    chance: float
    said: float
    true: float


def main() -> None:
    """Print two tables in Markdown."""
    parser = argparse.ArgumentParser(description="Hold what searches say is left against recordings.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=6)
    options = parser.parse_args()
    spaces = [load(path) for path in sorted(options.folder.glob("*/*_T4.json.gz"))]
    answers = [
        answer
        for recorded in spaces
        for engine in ENGINES
        for seed in range(options.seeds)
        for answer in asked(recorded, engine, seed)
    ]
    print("\n".join((*savings(answers), "", *chances(answers))))


def asked(recorded: Recorded, engine: str, seed: int) -> Iterator[Answer]:
    """One search, asked after some trials."""
    rows = replay(recorded, make_searcher(engine), budget=ASKED[-1], seed=seed).rows
    best_ms = np.nanmin(recorded.times_ms)
    for count in ASKED:
        tried = list(rows[:count])
        found = stopping_estimate(recorded.space, [recorded.trials[row] for row in tried])
        if found.chance is not None and found.gain is not None:
            true = 1.0 - best_ms / np.nanmin(recorded.times_ms[tried])
            yield Answer(recorded.name, engine, count, found.chance, found.gain, float(true))


def savings(answers: Sequence[Answer]) -> Iterator[str]:
    """Said and true savings by space and trials."""
    yield "| searcher, space | " + " | ".join(f"{count} tried" for count in ASKED) + " |"
    yield "|---" * (1 + len(ASKED)) + "|"
    for engine in ENGINES:
        for space in dict.fromkeys(answer.space for answer in answers):
            chosen = [answer for answer in answers if (answer.engine, answer.space) == (engine, space)]
            cells = []
            for count in ASKED:
                these = [answer for answer in chosen if answer.trials == count]
                said, true = mean(one.said for one in these), mean(one.true for one in these)
                cells.append(f"{said:.1%} / {true:.1%}")
            yield f"| `{engine}`, {space} | " + " | ".join(cells) + " |"


def chances(answers: Sequence[Answer]) -> Iterator[str]:
    """How often something was faster, by the chance that was given."""
    yield "| searcher | chance said | times | something was faster |"
    yield "|---|---|---|---|"
    for engine in ENGINES:
        low = 0.0
        for high in CHANCES:
            these = [
                one.true >= FASTER for one in answers if one.engine == engine and low <= one.chance < high
            ]
            share = f"{mean(these):.0%}" if these else "-"
            yield f"| `{engine}` | {low:.0%} to {min(high, 1.0):.0%} | {len(these)} | {share} |"
            low = high


if __name__ == "__main__":
    main()
