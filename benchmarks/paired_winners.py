"""The winners of another version of autotune beside this one's: pairs of searches with the same seed.

    git worktree add OTHER COMMIT
    python benchmarks/paired_winners.py OTHER [SPACE ...] [--device cuda:0] [--pairs 20] [--seconds S]

The spaces take turns, and every pair starts from cold caches. If the winners differ and neither search calls
the other's winner a tie, this version times both in four more processes, in turns. Ours counts as slower if
its better time is more than 2% above that of the other winner: then the exit status is 1. Neither side runs
sanitizers, which do not choose winners.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from installed import installed_environment

ROOT = Path(__file__).parents[1]
SPACES = ("reduce", "leak", "transpose", "bicgk")
TURNS = 2
TIE = 1.02


def main() -> None:
    """Search in pairs, and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="the folder of another version")
    parser.add_argument("spaces", nargs="*", default=SPACES, metavar="SPACE")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no pair after so long")
    parsed = parser.parse_args()
    end, found = time.monotonic() + parsed.seconds, Counter[str]()
    for number in range(parsed.pairs):
        if time.monotonic() >= end:
            break
        space = parsed.spaces[number % len(parsed.spaces)]
        with tempfile.TemporaryDirectory() as folder:
            asked = [f"spaces/{space}.yaml", "--device", parsed.device]
            seeded = ["search", *asked, "--seed", str(number), "--no-sanitizer"]
            versions = {"ours": ROOT, "theirs": parsed.other.resolve()}
            results = {
                name: answer(version, seeded, Path(folder) / name) for name, version in versions.items()
            }
            verdict = compared(results, asked, Path(folder))
        found[verdict.partition(":")[0]] += 1
        print(f"{space}, seed {number}: {verdict}", flush=True)
    print(", ".join(f"{verdict}: {count}" for verdict, count in found.items()))
    sys.exit(found["slower"] > 0)


def compared(results: Mapping[str, Any], asked: list[str], folder: Path) -> str:
    """Whether our winner is the same, tied, faster or slower, with the ratio where both were timed again."""
    configs = {name: result["config"] for name, result in results.items()}
    ours, theirs = configs.values()
    if ours == theirs:
        return "same"
    if theirs in results["ours"]["ties"] or ours in results["theirs"]["ties"]:
        return "tied"
    times_ms: dict[str, list[float]] = {name: [] for name in configs}
    for turn in range(TURNS):
        for name, config in configs.items():
            words = ",".join(f"{key}={value}" for key, value in config.items())
            rows = answer(ROOT, ["run", *asked, "--config", words], folder / f"{name}-{turn}")
            times_ms[name].append(rows[0]["time_ms"])
    ratio = min(times_ms["ours"]) / min(times_ms["theirs"])
    verdict = "slower" if ratio > TIE else "faster" if ratio < 1 / TIE else "tied"
    return f"{verdict}: {ratio:.3f} of the other winner's time"


def answer(version: Path, words: list[str], folder: Path) -> Any:
    """What a command of a version prints with `--json`; exits if it fails."""
    folder.mkdir()
    environment = installed_environment(version)
    environment |= {"XDG_CACHE_HOME": str(folder), "CUDA_CACHE_PATH": str(folder)}
    kept = ["--journal", str(folder / "journal.jsonl"), "--cache", str(folder / "cache"), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "autotune", *words, *kept],
        cwd=version,  # each reads its own spaces
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{version}: {done.stderr.strip()}")
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
