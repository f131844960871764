"""False alarms and cost of what a configuration must pass before it is stored.

    python benchmarks/stored_checks.py [--device cuda:0] [--random 6] [--jobs 4] [--search reduce]

Every landmark of every space and some random configurations run with other schedules and, on a CUDA
device, under the four tools of compute-sanitizer, eight at a time as in a search. Nothing may be
found. Then a space is searched with 100 configurations, and the seconds of these checks are printed
beside those of the whole search. Exits with 1 after a false alarm.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autotune.cli.progress import SearchProgress, Verbosity
from autotune.core.records import Config
from autotune.core.trials import Budget
from autotune.devices import BACKENDS
from autotune.errors import AutotuneError
from autotune.space import load_space
from autotune.tuning import stored_checks
from autotune.tuning.context import open_context
from autotune.tuning.options import Options
from autotune.tuning.task import Target, TuningTask, bind_target, find_device
from autotune.tuning.tuner import search

AT_ONCE = 8  # as many as a search stores at most


def main() -> None:
    """Look for false alarms in all spaces, then time a search."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", help="as of autotune search")
    parser.add_argument(
        "--random", metavar="N", type=int, default=6, help="configurations (default %(default)s)"
    )
    parser.add_argument("--only", metavar="KERNEL", help="look for false alarms in one space only")
    parser.add_argument(
        "--jobs", metavar="N", type=int, default=1, help="spaces at once (default %(default)s)"
    )
    parser.add_argument("--search", metavar="SPACE", help="the space to search at the end (default: none)")
    parser.add_argument(
        "--budget", metavar="N", type=int, default=100, help="of the search (default %(default)s)"
    )
    parsed = parser.parse_args()
    address, device = find_device(parsed.device)
    accepted = BACKENDS[address.backend].accepts
    paths = (
        [ROOT / "spaces" / f"{parsed.only}.yaml"] if parsed.only else sorted((ROOT / "spaces").glob("*.yaml"))
    )
    with ThreadPoolExecutor(parsed.jobs) as threads:
        usable = [path for path in paths if load_space(path).dialect in accepted]
        alarms = sum(threads.map(partial(false_alarms, device=str(address), count=parsed.random), usable))
    print(f"false alarms on {device.name}: {alarms}", flush=True)
    if parsed.search:
        time_search(parsed.search, str(address), parsed.budget)
    sys.exit(alarms > 0)


def false_alarms(path: Path, device: str, count: int) -> int:
    """Check the landmarks of a space and `count` random configurations; print and count what is found."""
    began = time.perf_counter()
    sizes = load_space(path).verify_sizes
    try:
        task = bind_target(Target(path, device, sizes[-1] if sizes else {}))
        configs = chosen(task, count)
        with tempfile.TemporaryDirectory() as folder:
            options = Options(journal=Path(folder) / "j.jsonl", timeout_s=60)
            with SearchProgress(Verbosity.QUIET) as quiet, open_context(task, options, quiet) as context:
                found = {
                    config: failure
                    for start in range(0, len(configs), AT_ONCE)
                    for config, failure in stored_checks.check_configurations(
                        context, configs[start : start + AT_ONCE]
                    ).items()
                }
    except AutotuneError as error:
        print(f"{path.stem}: not tried: {error}", flush=True)
        return 0
    for config, failure in found.items():
        print(f"{path.stem}: FALSE ALARM: {config}: {failure.status.value}: {failure.detail}")
    took_s = time.perf_counter() - began
    print(
        f"{path.stem}: {len(configs)} configurations, {len(found)} false alarms, {took_s:.0f} s", flush=True
    )
    return len(found)


def chosen(task: TuningTask, count: int) -> list[Config]:
    """The default, the landmarks and random configurations."""
    named = [task.spec.default, *(landmark.config for landmark in task.spec.landmarks)]
    rows = np.random.default_rng(0).integers(0, len(task.space), count)
    drawn = [task.space.config(int(row)) for row in rows]
    return list(dict.fromkeys(config for config in (*named, *drawn) if config in task.space))


def time_search(space: str, device: str, budget: int) -> None:
    """Search a space, and print what the checks of its winner and ties took."""
    seconds = defaultdict[str, float](float)

    def timed(name: str) -> None:
        function: Callable[..., Any] = getattr(stored_checks, name)

        @wraps(function)
        def wrapper(*arguments: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                seconds[name] += time.perf_counter() - began

        setattr(stored_checks, name, wrapper)

    timed("on_other_data")
    timed("with_other_schedules")
    timed("sanitized")
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
    schedules_s, sanitizer_s = seconds["with_other_schedules"], seconds["sanitized"]
    without_s = total_s - schedules_s - sanitizer_s
    print(
        f"{space}: {len(result.trials)} configurations, {1 + len(result.ties)} stored; without checks "
        f"{without_s:.1f} s; other schedules {schedules_s:.1f} s ({schedules_s / without_s:.1%}); "
        f"sanitizer {sanitizer_s:.1f} s\nrejected: {len(result.failed_last_round)}; {result.checks}"
    )


if __name__ == "__main__":
    main()
