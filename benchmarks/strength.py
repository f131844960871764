"""How many planted mistakes the shipped spaces' own verification finds: `autotune check --strength` of each.

    python benchmarks/strength.py FOLDER [SPACE ...] [--device cuda:0] [--at-once 1] [--time 300]

Spaces that the device cannot run are named with the reason. Each space's output is kept in FOLDER, and spaces
that have one there are not measured again. `--at-once` measures several spaces at a time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from autotune.strength.record import CAUGHT, EQUIVALENT, MISSED, read

ROOT = Path(__file__).parents[1]


def measure(space: str, folder: Path, parsed: argparse.Namespace) -> str:
    """Measure a space, and return its row of the table."""
    folder.mkdir(parents=True, exist_ok=True)
    output, taken = folder / "strength.json", folder / "seconds.txt"
    if not output.exists():
        began = time.perf_counter()
        options = ["--strength", "--device", parsed.device, "--time", str(parsed.time), "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "autotune", "check", str(ROOT / "spaces" / f"{space}.yaml"), *options],
            cwd=folder,
            env={"PYTHONPATH": str(ROOT), **os.environ},
            capture_output=True,
            text=True,
        )
        (folder / "errors.txt").write_text(done.stderr)
        if not done.stdout:
            reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
            return f"| {space} | | | | | | {reason.removeprefix('autotune: ')} |"
        taken.write_text(f"{time.perf_counter() - began:.0f}")
        output.write_text(done.stdout)
    found = read(output)
    if found is None:
        return f"| {space} | | | | | | no mistake could be planted |"
    caught, missed, equivalent = (len(found.of(verdict)) for verdict in (CAUGHT, MISSED, EQUIVALENT))
    score = "-" if found.score is None else f"{found.score:.0%}"
    return (
        f"| {space} | {score} | {caught} | {missed} | {equivalent} | {found.left} | {taken.read_text()} s |"
    )


def main() -> None:
    """Measure the spaces, and print their table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("spaces", nargs="*", help="names of shipped spaces (default all)")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="spaces at a time (default 1)")
    parser.add_argument("--time", type=float, default=300, metavar="S", help="of each (default 300)")
    parsed = parser.parse_args()
    spaces = parsed.spaces or sorted(path.stem for path in (ROOT / "spaces").glob("*.yaml"))
    print(
        "| space | score | caught | missed | equivalent | not tried | time |\n|---|---|---|---|---|---|---|"
    )
    with ThreadPoolExecutor(parsed.at_once) as pool:
        for row in pool.map(lambda space: measure(space, parsed.folder.resolve() / space, parsed), spaces):
            print(row, flush=True)


if __name__ == "__main__":
    main()
