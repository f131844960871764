"""Another version of autotune beside this one: the same search in alternating pairs of whole processes.

    git worktree add OTHER COMMIT
    python benchmarks/two_versions.py OTHER [SPACE] [--device cuda:0] [--budget 216] [--pairs 10]

Each process searches all configurations from cold caches, by default the 216 of Kernel Tuner's reduction. The
last line has the median of the pairs' ratios, this version over the other one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from installed import installed_environment

ROOT = Path(__file__).parents[1]


def search_s(version: Path, space: Path, parsed: argparse.Namespace) -> float:
    """The seconds of a search by the version in that folder; exits if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        environment = installed_environment(version)
        environment |= {"XDG_CACHE_HOME": folder, "CUDA_CACHE_PATH": folder}
        what = [
            str(space),
            "--device",
            parsed.device,
            "--engine",
            "exhaustive",
            "--budget",
            str(parsed.budget),
        ]
        kept = ["--journal", "journal.jsonl", "--cache", "cache", "--json"]
        began_s = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "autotune", "search", *what, *kept],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{version}: {done.stderr.strip()}")
        return time.perf_counter() - began_s


def main() -> None:
    """Measure the pairs, and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="the folder of another version")
    parser.add_argument("space", type=Path, nargs="?", default=ROOT / "benchmarks/peers/reduction.yaml")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--budget", type=int, default=216)
    parser.add_argument("--pairs", type=int, default=10)
    parsed = parser.parse_args()
    versions = {"this": ROOT, "other": parsed.other.resolve()}
    space = parsed.space.resolve()
    for version in versions.values():
        search_s(version, space, parsed)  # reads the files of both once
    ratios = []
    for number in range(parsed.pairs):
        order = list(versions) if number % 2 else list(reversed(versions))
        seconds = {name: search_s(versions[name], space, parsed) for name in order}
        ratios.append(seconds["this"] / seconds["other"])
        print(f"this {seconds['this']:.2f} s, other {seconds['other']:.2f} s: {ratios[-1]:.3f}", flush=True)
    print(f"median of {len(ratios)} pairs: {median(ratios):.3f}")


if __name__ == "__main__":
    main()
