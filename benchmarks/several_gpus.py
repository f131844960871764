"""Trials per second and the winner with one and with several GPUs of one machine.

    python benchmarks/several_gpus.py [--devices cuda:0,cuda:1] [--reductions N] [--products N]

The reduction of `spaces/reduce.yaml`, in the order of the space, and the matrix product of
`peers/matmul.yaml`, whose compilation takes most of the time. Every search is a fresh process. Each space is
searched twice with one device and with all. First all kernels are compiled, then their binaries are cached:
the first rate is that of cores and devices together, the second that of the devices. The CPU time is that of
the searching process.

Trials per second are those of the last nine tenths of the trials. What a search takes once, however many
trials it has, is given apart: until the first tenth of the trials has ended, and after the last one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from autotune.core.trials import Budget, Trial
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import Target, read_task
from autotune.tuning.tuner import search

ROOT = Path(__file__).parents[1]
COLUMNS = (
    *("space", "devices", "binaries", "trials", "failed", "until a tenth, s", "trials per s"),
    *("CPU ms per trial", "then, s", "best ms", "winner"),
)


class Clock(Observer):
    """Notes when each trial ended, and the CPU time until then."""

    def __init__(self) -> None:
        self.trials: list[Trial] = []
        self.ends_s: list[float] = []
        self.cpu_s: list[float] = []

    def tried(self, trial: Trial) -> None:
        """Note the times."""
        self.trials.append(trial)
        self.ends_s.append(time.perf_counter())
        self.cpu_s.append(time.process_time())


def main() -> None:
    """Run the searches in turns and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", default="cuda:0,cuda:1")
    parser.add_argument("--reductions", type=int, default=100_000, help="at most so many trials; 0: none")
    parser.add_argument("--products", type=int, default=100_000, help="at most so many trials; 0: none")
    parser.add_argument("--one", nargs=3, metavar=("SPACE", "BUDGET", "DEVICES"), help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.one:
        print(json.dumps(run(*parsed.one)))
        return
    print(f"{os.cpu_count()} cores\n| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|")
    for path, budget in (
        ("spaces/reduce.yaml", parsed.reductions),
        ("benchmarks/peers/matmul.yaml", parsed.products),
    ):
        if budget:
            compare(ROOT / path, budget, parsed.devices)


def compare(space: Path, budget: int, devices: str) -> None:
    """Search one space with one device and with all, and print a row for each search."""
    with tempfile.TemporaryDirectory() as folder:
        for binaries in ("compiled", "cached"):
            rates = []
            for used in (devices.partition(",")[0], devices):
                row = _searched(space, budget, used, f"{folder}/{used}")
                rates.append(row["rate"])
                cells = (space.stem, used, binaries, row["trials"], row["failed"])
                rate = (f"{row['start_s']:.1f}", f"{row['rate']:.1f}")
                last = (f"{row['cpu_ms']:.2f}", f"{row['end_s']:.1f}", f"{row['best_ms']:.4f}", row["winner"])
                print(f"| {' | '.join(map(str, (*cells, *rate, *last)))} |", flush=True)
            print(f"{space.stem}, {binaries}: {rates[1] / rates[0]:.2f} times as fast with {devices}")


def _searched(space: Path, budget: int, devices: str, cache: str) -> dict[str, Any]:
    """What `run` returns in a fresh process whose user's cache is in a folder."""
    command = [sys.executable, __file__, "--one", str(space), str(budget), devices]
    environment = os.environ | {"XDG_CACHE_HOME": cache}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        sys.exit(done.returncode)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def run(space: str, budget: str, devices: str) -> dict[str, Any]:
    """Search once; return what a row of the table shows."""
    clock, began_s = Clock(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        options = Options(
            engine="exhaustive",
            budget=Budget(trials=int(budget)),
            journal=Path(folder) / "journal.jsonl",
            cache=Path(folder) / "cache",
            sanitizer=False,
        )
        result = search(read_task(Target(Path(space), devices=devices)), options, clock)
        ended_s = time.perf_counter()
    first_s, *_, last_s = steady = clock.ends_s[len(clock.trials) // 10 :]
    return {
        "trials": len(result.trials),
        "failed": sum(trial.time_ms is None for trial in result.trials),
        "start_s": first_s - began_s,
        "rate": (len(steady) - 1) / (last_s - first_s),
        "cpu_ms": (clock.cpu_s[-1] - clock.cpu_s[-len(steady)]) / (len(steady) - 1) * 1e3,
        "end_s": ended_s - last_s,
        "best_ms": result.final.median_ms,
        "winner": str(result.winner.config),
    }


if __name__ == "__main__":
    main()
