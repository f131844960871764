"""What the checks before a result is stored cost in a search.

    python benchmarks/winner_checks.py SPACE [--device cuda:0] [--budget 100]

SPACE, a file, is searched, and the seconds of each check of the winner and its ties are printed beside those
of the rest of the search: on other data, many runs, other schedules, on the CPU under sanitizers and, on a
CUDA device, under the four tools of compute-sanitizer.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autotune.cli.progress import SearchProgress, Verbosity
from autotune.core.outcomes import checks_text
from autotune.core.trials import Budget
from autotune.processes.deadline import Deadline
from autotune.tuning import winner_checks
from autotune.tuning.check_outcomes import OutcomesByConfig
from autotune.tuning.context import Builds, TuningContext
from autotune.tuning.options import Options
from autotune.tuning.task import Target, read_task
from autotune.tuning.tuner import search


def main() -> None:
    """Time a search and its checks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("space", metavar="SPACE", help="the space file to search")
    parser.add_argument("--device", help="as of autotune search")
    parser.add_argument(
        "--budget", metavar="N", type=int, default=100, help="configurations (default %(default)s)"
    )
    asked = parser.parse_args()
    time_search(asked.space, asked.device, asked.budget)


def time_search(space: str, device: str | None, budget: int) -> None:
    """Search a space, and print what the checks of its winner and ties took."""
    seconds = defaultdict[str, float](float)

    def timed(check: winner_checks.Check) -> winner_checks.Check:
        def run(context: TuningContext, builds: Builds, deadline: Deadline) -> OutcomesByConfig:
            began_s = time.perf_counter()
            try:
                return check.run(context, builds, deadline)
            finally:
                seconds[check.run.__name__] += time.perf_counter() - began_s

        return replace(check, run=run, early=None, processes=lambda _: nullcontext())  # all of it is timed

    winner_checks.CHECKS = tuple(map(timed, winner_checks.CHECKS))
    with tempfile.TemporaryDirectory() as folder:
        options = Options(
            journal=Path(folder) / "j.jsonl",
            cache=Path(folder) / "cache",
            budget=Budget(trials=budget),
            binary_cache=False,
            transfer=False,
        )
        began = time.perf_counter()
        with SearchProgress(Verbosity.QUIET) as quiet:
            result = search(read_task(Target(Path(space), device)), options, quiet)
    total_s = time.perf_counter() - began
    without_s = total_s - sum(seconds.values())
    each = "; ".join(f"{name} {took_s:.1f} s ({took_s / without_s:.1%})" for name, took_s in seconds.items())
    checks = checks_text(result.checks)
    print(
        f"{space}: {len(result.trials)} configurations, {1 + len(result.ties)} stored; without checks "
        f"{without_s:.1f} s; {each}\nrejected: {len(result.failed_last_round)}; {checks}"
    )


if __name__ == "__main__":
    main()
