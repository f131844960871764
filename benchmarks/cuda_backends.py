"""The two CUDA back-ends beside each other: the same configurations of reduce, timed by both.

    python benchmarks/cuda_backends.py [--configurations 30] [--rounds 6] [--size N] [--seed 0]

The configurations are drawn at random with `--seed`. The back-ends take turns in fresh processes; each
verifies every configuration and times it in full (30 samples, 0.3 s or known to 1%; nothing is given up
early). A configuration's time is the median over the rounds of the medians. Needs the extras `cuda` and
`pycuda`. Prints the largest and the median difference, and that of either back-end with itself: its first
half of the rounds against its second.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from autotune.cli.progress import SearchProgress
from autotune.core.trials import Budget
from autotune.errors import AutotuneError
from autotune.searchers.base import evaluate
from autotune.tuning.context import open_run
from autotune.tuning.options import Options
from autotune.tuning.task import Target, read_task


def timed(backend: str, parsed: argparse.Namespace) -> list[tuple[str, float | None]]:
    """Each configuration with its median in ms, None where it failed; in this process's own worker."""
    task = read_task(Target(Path("reduce"), backend, {"n": parsed.size}))
    rows = random.Random(parsed.seed).sample(range(len(task.space)), parsed.configurations)
    configs = [task.space.config(row) for row in rows]
    with tempfile.TemporaryDirectory() as folder, SearchProgress() as progress:
        options = Options(
            budget=Budget(trials=len(configs)), journal=Path(folder) / "journal.jsonl", binary_cache=False
        )
        with open_run(task, options, progress) as context:
            return [(str(trial.config), trial.time_ms) for trial in evaluate(context.evaluator, configs)]


def in_fresh_process(backend: str) -> dict[str, float | None]:
    """The same from a process of its own."""
    command = [sys.executable, *sys.argv, "--only", backend]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{backend} failed, see above")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Let the back-ends take turns and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backends", nargs=2, default=["cuda:0", "pycuda:0"], help="default: %(default)s")
    parser.add_argument("--configurations", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=6, help="at least 2; default: %(default)s")
    parser.add_argument("--size", type=int, default=2**27)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.only:
        try:
            print(json.dumps(timed(parsed.only, parsed)))
        except AutotuneError as error:
            sys.exit(f"error: {error}")
        return
    rounds = [
        [in_fresh_process(backend) for backend in parsed.backends] for _ in range(max(2, parsed.rounds))
    ]
    first, second = parsed.backends
    print(f"{first + ' ms':>14}{second + ' ms':>14}{'ratio':>9}  configuration")
    ratios = []
    against_itself: tuple[list[float], list[float]] = ([], [])
    half = len(rounds) // 2
    for config in rounds[0][0]:
        times = [
            [time_ms for taken in rounds if (time_ms := taken[side].get(config)) is not None]
            for side in (0, 1)
        ]
        if min(map(len, times)) < len(rounds):
            print(f"{'failed':>37}  {config}")
            continue
        one, other = (median(side) for side in times)
        for differences, side in zip(against_itself, times, strict=True):
            differences.append(abs(median(side[:half]) / median(side[half:]) - 1))
        ratios.append(other / one)
        print(f"{one:14.4f}{other:14.4f}{ratios[-1]:9.4f}  {config}")
    worst = max(ratios, key=lambda ratio: abs(ratio - 1))
    middle = median(abs(ratio - 1) for ratio in ratios)
    print(
        f"{len(ratios)} configurations, {len(rounds)} rounds: {second} over {first}: worst {worst:.4f}, "
        f"median difference {middle:.2%}"
    )
    for backend, differences in zip(parsed.backends, against_itself, strict=True):
        print(f"{backend} against itself: worst {max(differences):.2%}, median {median(differences):.2%}")


if __name__ == "__main__":
    main()
