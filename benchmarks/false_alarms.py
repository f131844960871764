"""Whether right configurations fail verification or the checks before they are stored.

    python benchmarks/false_alarms.py [SPACE ...] [--device cuda:0] [--random 300] [--jobs 8]
        [--seconds 240] [--no-sanitizer | --host] [--results FILE]

The default, every landmark and random configurations of every space and element type are verified as in a
search, then run on other data, often, with other schedules, on the CPU under sanitizers and, on a CUDA
device, under the four tools of compute-sanitizer, eight at a time as in a search. Nothing may be found. Exits
with 1 after a false alarm.

With `--results`, each configuration's line is added to FILE when it is done, and configurations that FILE has
are not tried again: a long run can be stopped at any time and goes on with the same command. The table shows
all of FILE, so use one for each device and choice of checks. `--seconds 0` only prints the table. After an
alarm on PoCL, all machine code of the part is copied to the folder FILE.machine-code: it shows whether the
compiler or the machine was at fault.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autotune.core.outcomes import first_failure, unchecked_text
from autotune.core.records import Config
from autotune.core.trials import Failure
from autotune.devices import BACKENDS
from autotune.devices.listing import find_device
from autotune.errors import AutotuneError
from autotune.evaluation.instance import KernelInstance
from autotune.problem.workload import verification_order
from autotune.processes.deadline import Deadline
from autotune.space import load_space
from autotune.tuning.context import TuningContext, open_context
from autotune.tuning.journaled_task import with_journal
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.sanitizer_checks import check_on_host
from autotune.tuning.shared_processes import open_processes
from autotune.tuning.task import Target, TuningTask, read_task
from autotune.tuning.winner_checks import WinnerChecks

AT_ONCE = 8  # as many as a search stores at most
PART = 5 * AT_ONCE  # for one process on the device


@dataclass(frozen=True)
class Part:
    """Some configurations of a space with one element type."""

    space: str
    task: TuningTask
    configs: Sequence[Config]


class Results:
    """What was found of each configuration, also by earlier runs if there is a file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = Lock()
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.rows = [json.loads(line) for line in lines]
        self._known = {_key(row["space"], row["dtype"], row["config"]) for row in self.rows}

    def has(self, space: str, task: TuningTask, config: Config) -> bool:
        """Whether a configuration was tried."""
        return _key(space, task.space.problem.dtype, config) in self._known

    def add(self, part: Part, config: Config, alarm: str, gap: str) -> None:
        """Keep what was found of a configuration, and print a false alarm."""
        dtype = part.task.space.problem.dtype
        row = {"space": part.space, "dtype": dtype, "config": dict(config), "alarm": alarm, "gap": gap}
        with self._lock:
            self.rows.append(row)
            self._known.add(_key(part.space, dtype, config))
            if alarm:
                print(f"{part.space}: FALSE ALARM: {dtype} {dict(config)}: {alarm}", flush=True)
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps(row) + "\n")

    def keep_machine_code(self, scratch: str) -> None:
        """Copy what PoCL has made in the scratch folder of a part; other devices make none there."""
        if self._path is not None:
            for made in Path(scratch).rglob("*.so"):
                kept = Path(f"{self._path}.machine-code") / made.relative_to(scratch)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(made, kept)


def _key(space: str, dtype: str, config: Mapping[str, object]) -> tuple[str, str, str]:
    return space, dtype, json.dumps(dict(config), sort_keys=True)


def main() -> None:
    """Look for false alarms in all spaces."""
    began = time.monotonic()
    asked = arguments()
    end = began + (math.inf if asked.seconds is None else asked.seconds)
    address, device = find_device(asked.device)
    results = Results(asked.results)
    spaces = [
        path
        for path in sorted((ROOT / "spaces").glob("*.yaml"))
        if path.stem in (asked.spaces or [path.stem])
        and load_space(path).dialect in BACKENDS[address.backend].accepts
    ]
    parts = [] if time.monotonic() >= end else list(in_parts(spaces, str(address), asked.random, results))
    with ThreadPoolExecutor(asked.jobs) as threads:
        list(threads.map(lambda part: try_part(part, asked, results, end), parts))
    left = sum(not results.has(part.space, part.task, config) for part in parts for config in part.configs)
    print(f"\n{device.name}; configurations that are left: {left}\n\n{table(results)}")
    sys.exit(any(row["alarm"] for row in results.rows))


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("spaces", nargs="*", metavar="SPACE", help="default: all")
    parser.add_argument("--device", help="as of autotune search")
    parser.add_argument(
        "--random", metavar="N", type=int, default=6, help="configurations of a space (default %(default)s)"
    )
    parser.add_argument(
        "--jobs", metavar="N", type=int, default=1, help="parts at the same time (default %(default)s)"
    )
    parser.add_argument("--seconds", metavar="S", type=float, help="begin no check after so long")
    tools = parser.add_mutually_exclusive_group()
    tools.add_argument("--no-sanitizer", action="store_true", help="without any sanitizer")
    tools.add_argument("--host", action="store_true", help="only on the CPU under sanitizers")
    parser.add_argument(
        "--results", metavar="FILE", type=Path, help="keep results there, and go on with them"
    )
    return parser.parse_args()


def in_parts(spaces: Sequence[Path], device: str, count: int, results: Results) -> list[Part]:
    """What was not tried yet; the spaces in turns, landmarks first."""
    parts: list[tuple[int, Part]] = []
    for path in spaces:
        spec = load_space(path)
        sizes = spec.verify_sizes[-1] if spec.verify_sizes else {}
        for dtype in spec.dtypes:
            try:
                task = read_task(Target(path, device, sizes, dtype))
            except AutotuneError as error:
                print(f"{path.stem}: not tried: {error}", flush=True)
                break
            configs = chosen(task, -(-count // len(spec.dtypes)))
            left = [config for config in configs if not results.has(path.stem, task, config)]
            for start in range(0, len(left), PART):
                parts.append((start, Part(path.stem, task, left[start : start + PART])))
    return [part for _, part in sorted(parts, key=lambda pair: pair[0])]


def chosen(task: TuningTask, count: int) -> list[Config]:
    """The default, the landmarks and random configurations."""
    named = [task.spec.default, *(landmark.config for landmark in task.spec.landmarks)]
    rows = np.random.default_rng(0).integers(0, len(task.space), count)
    drawn = [task.space.config(int(row)) for row in rows]
    return list(dict.fromkeys(config for config in (*named, *drawn) if config in task.space))


def try_part(part: Part, asked: argparse.Namespace, results: Results, end: float) -> None:
    """Check the configurations of a part, as far as there is time."""
    with tempfile.TemporaryDirectory() as folder:
        options = Options(
            journal=Path(folder) / "j.jsonl",
            timeout_s=60,
            compilers=max(1, len(os.sched_getaffinity(0)) // asked.jobs),
            binary_cache=False,
            sanitizer=not asked.no_sanitizer,
        )
        if time.monotonic() >= end:
            return
        observer = Observer()
        with (
            open_processes(part.task, options, observer) as processes,
            open_context(with_journal(part.task, options), options, observer, processes=processes) as context,
        ):
            for start in range(0, len(part.configs), AT_ONCE):
                if time.monotonic() < end:
                    configs = part.configs[start : start + AT_ONCE]
                    check = on_host if asked.host else everywhere
                    for config, alarm, gap in check(context, configs):
                        results.add(part, config, alarm, gap)
                        if alarm:
                            results.keep_machine_code(processes.scratch)


def everywhere(context: TuningContext, configs: Sequence[Config]) -> Iterator[tuple[Config, str, str]]:
    """Each configuration with what is found in it and what could not be checked."""
    instances = {config: context.maker.make(config) for config in configs}
    found = usual(context, instances)
    checks = WinnerChecks()
    found |= checks.check(context, [one for one in configs if one not in found], Deadline())
    for config in configs:
        failure = found.get(config)
        alarm = f"{failure.status.value}: {failure.detail}" if failure else ""
        yield config, alarm, unchecked_text(checks.outcomes.get(config, {}))


def usual(context: TuningContext, instances: Mapping[Config, KernelInstance]) -> dict[Config, Failure]:
    """The configurations that a search would reject."""
    compilations = {config: context.pool.compile(instance) for config, instance in instances.items()}
    failures: dict[Config, Failure] = {}
    for config, instance in instances.items():
        binary = compilations[config].result()
        if isinstance(binary, Failure):
            failures[config] = binary
            continue
        for workload in verification_order(instance.verify_workloads, context.task.device.kind) or (
            instance.workload,
        ):
            verdict = context.verify(binary, workload)
            if isinstance(verdict, Failure):
                failures[config] = verdict
                break
    return failures


def on_host(context: TuningContext, configs: Sequence[Config]) -> Iterator[tuple[Config, str, str]]:
    """The same, only on the CPU under sanitizers."""
    instances = [context.maker.make(config) for config in configs]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        found = [*threads.map(lambda instance: check_on_host(context, instance, Deadline()), instances)]
    for config, outcomes in zip(configs, found, strict=True):
        alarm = first_failure(outcomes)
        yield config, str(alarm or ""), "" if alarm else unchecked_text(outcomes)


def table(results: Results) -> str:
    """False alarms and what could not be checked, by space, as Markdown."""
    lines = ["| space | configurations | false alarms | not checked in full |", "|---|---|---|---|"]
    for space in sorted({row["space"] for row in results.rows}):
        rows = [row for row in results.rows if row["space"] == space]
        alarms, gaps = (sum(bool(row[name]) for row in rows) for name in ("alarm", "gap"))
        lines.append(f"| {space} | {len(rows)} | {alarms} | {gaps} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
