"""Searches side by side on one device: how many report a failure of a kernel that has none.

    python benchmarks/side_by_side.py [reduce] [--device cuda:0] [--at-once 8] [--searches 200] [--budget 6]
                                      [--limit-s 300]

The space must have no configuration that fails. Every search has a seed, a journal and a cache of its own.
What is not "ok" is a false alarm, and so is a search that ends because its default "failed": exits with 1.
PYTHONPATH=FOLDER runs the autotune of that folder, to compare two versions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]


def search(parsed: argparse.Namespace, home: Path, seed: int) -> tuple[Counter[str], str]:
    """Statuses of a search's trials with their reasons, and what it said if it failed."""
    folder = home / str(seed)
    folder.mkdir()
    size = [word for size in parsed.size for word in ("--size", size)]
    what = [parsed.space, "--device", parsed.device]
    limits = ["--engine", "random", "--budget", str(parsed.budget), "--seed", str(seed), "--compilers", "1"]
    kept = ["--journal", "j.jsonl", "--cache", "cache", "--no-transfer", "--no-sanitizer", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "autotune", "search", *what, *size, *limits, *kept],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), **os.environ, "XDG_CACHE_HOME": str(home / "binaries")},
        capture_output=True,
        text=True,
    )
    journal = folder / "j.jsonl"
    rows = map(json.loads, journal.read_text().splitlines()[1:]) if journal.exists() else ()
    trials = [row["trial"] for row in rows if "trial" in row]
    found = Counter(f"{trial['status']} {_pattern(trial.get('detail', ''))}".strip() for trial in trials)
    return found, (done.stderr.strip().splitlines() or ["no reason"])[-1] if done.returncode else ""


def _pattern(detail: str) -> str:
    """A reason without its numbers, so that equal ones count together; none for a twin of another trial."""
    return "" if detail.startswith("same binary") else re.sub(r"-?\d[\d.e+-]*", "#", detail)[:90]


def main() -> None:
    """Run the searches and print what they found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("space", nargs="?", default="reduce", help="a space file, or a name (%(default)s)")
    parser.add_argument("--device", default="cuda:0", help="which device (default %(default)s)")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=N", help="of the problem")
    parser.add_argument("--at-once", type=int, default=8, help="searches at a time (default %(default)s)")
    parser.add_argument("--searches", type=int, default=200, help="in all (default %(default)s)")
    parser.add_argument("--budget", type=int, default=6, help="configurations each (default %(default)s)")
    parser.add_argument("--limit-s", type=float, default=1e9, help="start no search after this time")
    parsed = parser.parse_args()
    if Path(parsed.space).exists():
        parsed.space = str(Path(parsed.space).resolve())
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(parsed.at_once) as threads:

        def in_time(seed: int) -> tuple[Counter[str], str] | None:
            in_vain = time.perf_counter() - began > parsed.limit_s
            return None if in_vain else search(parsed, Path(home), seed)

        results = [done for done in threads.map(in_time, range(parsed.searches)) if done]
    counts = sum((found for found, _ in results), Counter[str]())
    alarms = sum(any(status != "ok" for status in found) or bool(said) for found, said in results)
    ended = Counter(_pattern(said) for _, said in results if said)
    print(f"{'trials':>7}  outcome")
    for outcome, count in counts.most_common():
        print(f"{count:7}  {outcome}")
    for said, count in ended.most_common():
        print(f"{count:7}  searches ended: {said}")
    print(
        f"{alarms} of {len(results)} searches with a false alarm, {ended.total()} of them ended by it; "
        f"{parsed.at_once} at once, {time.perf_counter() - began:.0f} s"
    )
    sys.exit(1 if alarms else 0)


if __name__ == "__main__":
    main()
