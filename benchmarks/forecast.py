"""How well the progress of a search predicts the time that is left.

    python benchmarks/forecast.py [SPACE ...] [--device opencl:0] [--budget 40]

Each space is searched once, caches cold. Whenever the line of progress changes in the second half of a
search, the time left that it shows is divided by the true one, as long as that is at least a second. The
table has the seconds of the whole search and of its end (last round, checks, estimate), the median and the
extremes of these ratios, and the share of them between 1/1.5 and 1.5.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from autotune.cli.progress import SearchProgress, Verbosity
from autotune.core.trials import Budget
from autotune.tuning.options import Options
from autotune.tuning.task import Target, read_task
from autotune.tuning.tuner import search

ROOT = Path(__file__).parents[1]
SPACES = ("leak", "matadd", "reduce", "transpose", "bicgk")
FACTOR = 1.5


class Recorded(SearchProgress):
    """Keeps what it would show."""

    def __init__(self) -> None:
        super().__init__(Verbosity.QUIET)
        self.shown: list[tuple[float, float]] = []  # when, and the time left
        self.end_began_s = 0.0

    def last_round(self, count: int) -> None:
        """Note when the end begins."""
        self.end_began_s = self.end_began_s or time.monotonic()
        super().last_round(count)

    def _changed(self) -> None:
        left_s = self.left_s()
        if left_s is not None:
            self.shown.append((time.monotonic(), left_s))


def row(space: str, device: str, budget: int) -> str:
    """Search a space, and return its row of the table."""
    task = read_task(Target(ROOT / "spaces" / f"{space}.yaml", device))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = Options(
            journal=folder / "j.jsonl",
            cache=folder / "cache",
            budget=Budget(trials=budget),
            binary_cache=False,
            transfer=False,
        )
        began_s = time.monotonic()
        with Recorded() as progress:
            search(task, options, progress)
        ended_s = time.monotonic()
    half_s = (began_s + ended_s) / 2
    ratios = [left_s / (ended_s - at_s) for at_s, left_s in progress.shown if half_s < at_s < ended_s - 1]
    share = sum(1 / FACTOR <= ratio <= FACTOR for ratio in ratios) / len(ratios)
    seconds = f"{ended_s - began_s:.0f} | {ended_s - progress.end_began_s:.0f}"
    found = f"{median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} | {share:.0%}"
    return f"| {space} | {seconds} | {found} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("spaces", metavar="SPACE", nargs="*", default=SPACES, help="default: five of them")
    parser.add_argument("--device", default="opencl:0", help="as of autotune search (default %(default)s)")
    parser.add_argument("--budget", metavar="N", type=int, default=40, help="trials (default %(default)s)")
    asked = parser.parse_args()
    print("| space | whole s | its end s | median ratio | extremes | within a factor of 1.5 |")
    print("|---|---|---|---|---|---|", flush=True)
    for space in asked.spaces:
        print(row(space, asked.device, asked.budget), flush=True)


if __name__ == "__main__":
    main()
