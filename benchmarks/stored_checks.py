"""False alarms and cost of what a configuration must pass before it is stored.

    python benchmarks/stored_checks.py [--device cuda:0] [--random 6] [--jobs 4] [--host] [--search reduce]

Every landmark of every space and some random configurations run with other data and schedules, on the CPU
under sanitizers and, on a CUDA device, under the four tools of compute-sanitizer, eight at a time as in a
search. Nothing may be found. Then a space is searched with 100 configurations, and the seconds of each of
these checks are printed beside those of the rest of the search. Exits with 1 after a false alarm.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autotune.cli.progress import SearchProgress, Verbosity
from autotune.core.records import Config
from autotune.core.trials import Budget, Failure
from autotune.devices import BACKENDS
from autotune.devices.listing import find_device
from autotune.errors import AutotuneError
from autotune.evaluation.host_sanitizer import Unchecked
from autotune.space import load_space
from autotune.tuning import stored_checks
from autotune.tuning.context import TuningContext, open_context
from autotune.tuning.options import Options
from autotune.tuning.stored_checks import Checked, Deadline, Gaps
from autotune.tuning.task import Target, TuningTask, bind_target
from autotune.tuning.tuner import search

CHECKS = ("on_other_data", "often", "with_other_schedules", "on_host", "sanitized")
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
    parser.add_argument("--host", action="store_true", help="only on the CPU under sanitizers")
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
        check = partial(false_alarms, device=str(address), count=parsed.random, is_on_host=parsed.host)
        alarms = sum(threads.map(check, usable))
    print(f"false alarms on {device.name}: {alarms}", flush=True)
    if parsed.search:
        time_search(parsed.search, str(address), parsed.budget)
    sys.exit(alarms > 0)


def false_alarms(path: Path, device: str, count: int, is_on_host: bool) -> int:
    """Check the landmarks of a space and `count` random configurations; print and count what is found."""
    began = time.perf_counter()
    sizes = load_space(path).verify_sizes
    try:
        task = bind_target(Target(path, device, sizes[-1] if sizes else {}))
        configs = chosen(task, count)
        with tempfile.TemporaryDirectory() as folder:
            options = Options(journal=Path(folder) / "j.jsonl", timeout_s=60)
            with SearchProgress(Verbosity.QUIET) as quiet, open_context(task, options, quiet) as context:
                check = check_on_host if is_on_host else stored_checks.check_configurations
                checked = [
                    check(context, configs[start : start + AT_ONCE])
                    for start in range(0, len(configs), AT_ONCE)
                ]
    except AutotuneError as error:
        print(f"{path.stem}: not tried: {error}", flush=True)
        return 0
    found = [item for one in checked for item in one.failures.items()]
    gaps = [text for one in checked for gap in one.passed.values() if (text := str(gap))]
    for config, failure in found:
        print(f"{path.stem}: FALSE ALARM: {config}: {failure.status.value}: {failure.detail}")
    took_s = time.perf_counter() - began
    print(
        f"{path.stem}: {len(configs)} configurations, {len(found)} false alarms, {took_s:.0f} s", flush=True
    )
    for gap, times in Counter(gaps).items():
        print(f"{path.stem}: {times} of them: {gap}", flush=True)
    return len(found)


def check_on_host(context: TuningContext, configs: Sequence[Config]) -> Checked:
    """Check configurations only on the CPU."""
    instances = {config: context.maker.make(config) for config in configs}
    found = stored_checks.on_host(context, instances, Deadline())
    failures = {config: one for config, one in found.items() if isinstance(one, Failure)}
    gaps = {config: Gaps(one.reason) for config, one in found.items() if isinstance(one, Unchecked)}
    return Checked(failures, gaps)


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

    for name in CHECKS:
        timed(name)
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
    print(
        f"{space}: {len(result.trials)} configurations, {1 + len(result.ties)} stored; without checks "
        f"{without_s:.1f} s; {each}\nrejected: {len(result.failed_last_round)}; {result.checks}"
    )


if __name__ == "__main__":
    main()
