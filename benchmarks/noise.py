"""How much of a time is noise, and how much another search would have found.

    python benchmarks/noise.py [KERNEL] [--device cuda:0] [--pairs 5] [--budget 150] [--size n=134217728]

1. A/A: a configuration takes part in a last round twice, with one binary, and what the two medians differ by
   is the noise (a search reports it for its own last round). `--pairs` configurations of at least 50 us,
   drawn at random among the faster half of those that the first search tried, each in a fresh process.
2. The same search twice, with the seeds 0 and 1, each without any knowledge of earlier ones. The two
   winners are then timed in turns in one last round: 12 rounds of 2 samples each, in a fresh process.

Prints the largest A/A difference and the winners' difference in percent.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from autotune.cli.progress import SearchProgress
from autotune.core.trials import Budget, Trial
from autotune.errors import AutotuneError
from autotune.processes.deadline import Deadline
from autotune.tuning.context import TuningContext, open_context
from autotune.tuning.journaled_task import with_journal
from autotune.tuning.options import Options
from autotune.tuning.remeasure import Remeasurement, remeasure
from autotune.tuning.result import SearchResult
from autotune.tuning.task import Target, TuningTask, read_task
from autotune.tuning.tuner import search

SEEDS = (0, 1)
MIN_MS = 0.05


def searched(task: TuningTask, options: Options, folder: Path, seed: int) -> SearchResult:
    """One search with a journal and a cache of its own."""
    own = replace(options, seed=seed, journal=folder / f"{seed}.jsonl", cache=folder / f"cache{seed}")
    with SearchProgress() as progress:
        return search(task, own, progress)


def faster_ones(trials: Sequence[Trial], count: int) -> list[Trial]:
    """Some at random of the faster half of those that take long enough."""
    timed = [(trial.time_ms, trial) for trial in trials if trial.time_ms is not None]
    ranked = [trial for time_ms, trial in sorted(timed, key=itemgetter(0)) if time_ms >= MIN_MS]
    faster = ranked[: max(count, len(ranked) // 2)]
    if not faster:
        sys.exit(f"no configuration takes {MIN_MS} ms; choose a larger problem with --size")
    return random.Random(0).sample(faster, min(count, len(faster)))


def in_turns(context: TuningContext, trials: Sequence[Trial]) -> Remeasurement:
    """One last round with these; exits where one of them fails in it."""
    outcome = remeasure(context, trials, Deadline())
    for failure in outcome.rejected.values():
        sys.exit(f"failed in the last round: {failure.status.value}: {failure.detail}")
    return outcome


def print_same_binary(context: TuningContext, trials: Sequence[Trial]) -> float:
    """A/A of each: prints a line, and gives the largest difference."""
    print(f"{'ms':>10}{'A/A':>9}  configuration")
    worst = 0.0
    for trial in trials:
        (measurement,) = in_turns(context, [trial]).measurements.values()
        noise = measurement.noise or 0.0
        worst = max(worst, noise)
        print(f"{measurement.median_ms:10.4f}{noise:9.2%}  {trial.config}", flush=True)
    return worst


def print_winners(context: TuningContext, results: Sequence[SearchResult]) -> float:
    """The winners in turns: prints a line for each, and gives their difference."""
    winners = {result.winner.key: result.winner for result in results}
    remeasured = in_turns(context, list(winners.values()))
    times_ms = [remeasured.measurements[result.winner.key].median_ms for result in results]
    print(f"\n{'seed':>6}{'ms then':>10}{'in turns':>10}  winner")
    for seed, result, time_ms in zip(SEEDS, results, times_ms, strict=True):
        print(f"{seed:6}{result.final.median_ms:10.4f}{time_ms:10.4f}  {result.winner.config}")
    return max(times_ms) / min(times_ms) - 1


def main() -> None:
    """Search twice, then measure both kinds of difference."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernel", nargs="?", default="reduce", help="or a space file (default %(default)s)")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--budget", type=int, default=150, help="trials of each search (default %(default)s)")
    parser.add_argument("--engine", help="as for autotune search (default: as there)")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=N", help="a size of the problem")
    parsed = parser.parse_args()
    sizes = {name: int(size) for name, size in (text.split("=") for text in parsed.size)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = Options(engine=parsed.engine, budget=Budget(trials=parsed.budget), transfer=False)
        try:
            task = read_task(Target(Path(parsed.kernel), parsed.device, sizes))
            results = [searched(task, options, folder, seed) for seed in SEEDS]
            own = replace(options, journal=folder / "turns.jsonl")
            with (
                SearchProgress() as progress,
                open_context(with_journal(task, own), own, progress) as context,
            ):
                chosen = faster_ones(results[0].trials, parsed.pairs)
                noise = print_same_binary(context, chosen)
                apart = print_winners(context, results)
        except AutotuneError as error:
            sys.exit(f"error: {error}")
    both = "one and the same" if results[0].winner.key == results[1].winner.key else "two configurations"
    print(
        f"{task.spec.kernel} on {task.device.name}\n"
        f"one binary entered twice: {noise:.2%} apart at most, {len(chosen)} pairs\n"
        f"winners of two searches ({both}): {apart:.2%} apart"
    )


if __name__ == "__main__":
    main()
