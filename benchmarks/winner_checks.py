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
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autotune.cli.progress import SearchProgress, Verbosity
from autotune.core.checks import checks_text, reasons
from autotune.core.trials import Budget
from autotune.tuning import data_checks, sanitizer_checks, stress_checks
from autotune.tuning.options import Options
from autotune.tuning.task import Target, bind_target
from autotune.tuning.tuner import search

CHECKS = {
    "check_other_data": data_checks,
    "often": stress_checks,
    "check_other_schedules": stress_checks,
    "under_host_sanitizer": sanitizer_checks,
    "under_device_sanitizer": sanitizer_checks,
}


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

    def timed(module: ModuleType, name: str) -> None:
        function: Callable[..., Any] = getattr(module, name)

        @wraps(function)
        def wrapper(*arguments: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                seconds[name] += time.perf_counter() - began

        setattr(module, name, wrapper)

    for name, module in CHECKS.items():
        timed(module, name)
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
            result = search(bind_target(Target(Path(space), device)), options, quiet)
    total_s = time.perf_counter() - began
    without_s = total_s - sum(seconds.values())
    each = "; ".join(f"{name} {seconds[name]:.1f} s ({seconds[name] / without_s:.1%})" for name in CHECKS)
    checks = checks_text(reasons(result.checks))
    print(
        f"{space}: {len(result.trials)} configurations, {1 + len(result.ties)} stored; without checks "
        f"{without_s:.1f} s; {each}\nrejected: {len(result.failed_last_round)}; {checks}"
    )


if __name__ == "__main__":
    main()
