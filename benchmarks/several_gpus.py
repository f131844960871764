"""Trials per second and the winner with one and with several GPUs of one machine.

    python benchmarks/several_gpus.py [--devices cuda:0,cuda:1] [--reductions N] [--products N]

The reduction of `spaces/reduce.yaml`, in the order of the space, and the matrix product of
`peers/matmul.yaml`, whose compilation takes most of the time. Every search is a fresh process that keeps no
binaries. The rate leaves out the first trial, which waits for inputs, references and processes, and the last
round.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from autotune.core.trials import Budget
from autotune.tuning.context import Unobserved
from autotune.tuning.options import Options
from autotune.tuning.task import Target, bind_target
from autotune.tuning.tuner import search

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Run the searches in turns and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", default="cuda:0,cuda:1")
    parser.add_argument("--reductions", type=int, default=100_000, help="at most so many trials")
    parser.add_argument("--products", type=int, default=100_000, help="at most so many trials")
    parser.add_argument("--one", nargs=3, metavar=("SPACE", "BUDGET", "DEVICES"), help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.one:
        print(json.dumps(run(*parsed.one)))
        return
    print(f"{os.cpu_count()} cores")
    print("| space | devices | trials | failed | s | trials per s | best ms | winner |\n" + "|---" * 8 + "|")
    spaces = [
        (ROOT / "spaces" / "reduce.yaml", parsed.reductions),
        (ROOT / "benchmarks" / "peers" / "matmul.yaml", parsed.products),
    ]
    for space, budget in spaces:
        for devices in (parsed.devices.partition(",")[0], parsed.devices):
            command = [sys.executable, __file__, "--one", str(space), str(budget), devices]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            row = json.loads(done.stdout.splitlines()[-1])
            print(f"| {space.stem} | {devices} | " + " | ".join(row) + " |", flush=True)


def run(space: str, budget: str, devices: str) -> list[str]:
    """Search once; the cells of its row."""
    from autotune.tuning.cluster import local_devices, open_devices

    first, *others = devices.split(",")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        options = Options(
            engine="exhaustive",
            budget=Budget(trials=int(budget)),
            journal=Path(folder) / "journal.jsonl",
            cache=Path(folder) / "cache",
            binary_cache=False,
            sanitizer=False,
        )
        cluster = opened.enter_context(open_devices(local_devices(devices))) if others else None
        result = search(bind_target(Target(Path(space), first)), options, Unobserved(), cluster=cluster)
    count, failed = len(result.trials), sum(trial.time_ms is None for trial in result.trials)
    seconds = result.search_seconds - result.trials[0].cost_s
    final = f"{result.final.median_ms:.4f}"
    return [
        *(str(count), str(failed), f"{seconds:.1f}", f"{(count - 1) / seconds:.1f}"),
        *(final, str(result.winner.config)),
    ]


if __name__ == "__main__":
    main()
