"""What compiling neighbours of the best configuration in advance would gain searchers that ask one by one.

    python benchmarks/speculation.py FILE... [--budget 150] [--seeds 3] [--guesses 14]

FILE: recorded results that `search_efficiency.py` reads. Each search is replayed, and before every request
for a single new configuration idle compilers are imagined to have compiled the next `--guesses` neighbours of
the best one so far that nobody compiled yet: valid ones that differ in one parameter, nearest values first.

    alone     share of new configurations that are asked for one at a time: only these can gain
    hits      share of those that had been guessed and compiled by then: median, least and most of all
    wasted    compilations that were guessed and never asked for, per hit
"""

from __future__ import annotations

import argparse
import statistics
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from replay import Recorded, ReplayTrials, load

from autotune.core.records import Config
from autotune.core.trials import Trial
from autotune.errors import NoMoreTrials
from autotune.searchers import make_searcher

STRATEGIES = (
    ("surrogate", (None,)),
    ("optuna", ("tpe", "cmaes")),
    (
        "kernel_tuner",
        (
            *("hybrid_vndx", "adaptive_tabu_greywolf", "genetic_algorithm", "greedy_ils", "greedy_mls"),
            *("mls", "simulated_annealing", "diff_evo", "pso", "firefly_algorithm", "basinhopping"),
        ),
    ),
)


@dataclass
class Speculation:
    """Recorded results that count what guessing would have gained."""

    recorded: Recorded
    budget: int
    guesses: int
    alone: int = 0
    hits: int = 0
    compiled: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.trials = ReplayTrials(self.recorded, self.budget)
        self.best: Trial | None = None

    parallel = 1

    def submit(self, configs: Sequence[Config]) -> None:
        """Count, then begin."""
        found = {self.recorded.space.index(config) for config in configs} - {None}
        new = [row for row in found if row is not None and row not in self.trials.rows]
        if len(new) == 1 and self.best is not None:
            self.alone += 1
            self.compiled |= self.guess(self.best.config)
            self.hits += new[0] in self.compiled
        self.trials.submit(configs)

    def collect(self) -> list[Trial]:
        """The next trial."""
        found = self.trials.collect()
        for trial in found:
            if trial.time_ms is not None and (self.best is None or trial.time_ms < (self.best.time_ms or 0)):
                self.best = trial
        return found

    def guess(self, best: Config) -> set[int]:
        """The nearest neighbours of the best configuration that are neither tried nor compiled."""
        space, found = self.recorded.space, []
        for parameter in space.parameters:
            here = parameter.values.index(best[parameter.name])
            for position, value in enumerate(parameter.values):
                row = space.index({**best, parameter.name: value}) if position != here else None
                if row is not None and row not in self.trials.rows and row not in self.compiled:
                    found.append((abs(position - here), row))
        return {row for _, row in sorted(found)[: self.guesses]}


def main() -> None:
    """Print a line per strategy, over all files and seeds."""
    parser = argparse.ArgumentParser(description="Would speculative compilation help?")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    parser.add_argument("--budget", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--guesses", type=int, default=14)
    options = parser.parse_args()
    records = [load(path) for path in options.files]
    warnings.simplefilter("ignore")
    print(f"{'strategy':<38}{'alone':>8}{'hits':>8}{'least':>8}{'most':>8}{'wasted':>8}")
    for engine, strategies in STRATEGIES:
        for strategy in strategies:
            runs = [
                run(recorded, engine, strategy, seed, options)
                for recorded in records
                for seed in range(options.seeds)
            ]
            alone, hits, wasted = zip(*runs, strict=True)
            shares = (statistics.median(alone), statistics.median(hits), min(hits), max(hits))
            name = f"{engine}:{strategy}" if strategy else engine
            figures = "".join(f"{share:>8.0%}" for share in shares)
            print(f"{name:<38}{figures}{statistics.median(wasted):>8.1f}", flush=True)


def run(
    recorded: Recorded, engine: str, strategy: str | None, seed: int, options: argparse.Namespace
) -> tuple[float, float, float]:
    """One search: alone, hits and wasted."""
    found = Speculation(recorded, options.budget, options.guesses)
    with suppress(NoMoreTrials):
        make_searcher(engine, strategy).search(recorded.space, found, seed=seed)
    tried = found.trials.rows
    wasted = len(found.compiled - tried.keys())
    return (
        found.alone / max(1, len(tried)),
        found.hits / max(1, found.alone),
        wasted / max(1, found.hits),
    )


if __name__ == "__main__":
    main()
