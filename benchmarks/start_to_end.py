"""From the command to a proven winner: what `autotune search` takes from start to end, caches cold.

    python benchmarks/start_to_end.py FOLDER [SPACE ...] [--device cuda:0] [--budget 100] [--until SECONDS]

Each space is searched once, by a process of its own with default options, and keeps its journal, its timeline
and what it printed in FOLDER. The table has the seconds of the whole process, those of the stages that took
longest, and which checks were left out. `--until` leaves out spaces that have not begun by then.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from installed import installed_environment

ROOT = Path(__file__).parents[1]
SPACES = (
    "reduce",
    "transpose",
    "matmul",
    "convolution",
    "bicgk",
    "leak",
    "triton_matmul",
    "triton_layer_norm",
)
LIMIT_S = 500  # of a process
LONGEST = 4  # stages of a row


def run_cold(folder: Path, *command: str) -> tuple[float, str]:
    """Run Python with this command from cold caches: the seconds of the process, and why it failed.

    The caches and what it printed are kept in the folder.
    """
    folder.mkdir(parents=True)
    places = ("XDG_CACHE_HOME", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "CUPY_CACHE_DIR", "POCL_CACHE_DIR")
    environment = installed_environment()
    environment |= {place: str(folder / place.lower()) for place in places}
    began = time.perf_counter()
    with (folder / "output.txt").open("w") as output, (folder / "errors.txt").open("w") as errors:
        try:
            done = subprocess.run(
                [sys.executable, *command],
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=errors,
                timeout=LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            return LIMIT_S, f"failed: stopped after {LIMIT_S} s"
    seconds = time.perf_counter() - began
    last = (folder / "errors.txt").read_text().strip().splitlines()[-1:]
    return seconds, f"failed: {''.join(last)}" if done.returncode else ""


def run_search(space: Path, folder: Path, *options: str) -> tuple[float, str]:
    """Search a space from cold caches; the rest is as in `run_cold`, and the folder gets the journal, too."""
    kept = ("--journal", "journal.jsonl", "--cache", "cache", "--json")
    return run_cold(folder, "-m", "autotune", "search", str(space), *kept, *options)


def searched(space: str, folder: Path, device: str, budget: int) -> str:
    """Search a space, and return its row of the table."""
    options = ("--device", device, "--budget", str(budget), "--timeline", "timeline.json")
    seconds, failure = run_search(ROOT / "spaces" / f"{space}.yaml", folder, *options)
    if failure:
        return f"| {space} | {seconds:.1f} | {failure} | |"
    rows = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    stages: dict[str, float] = next((row["stages"] for row in reversed(rows) if "stages" in row), {})
    longest = sorted(stages.items(), key=lambda stage: -stage[1])[:LONGEST]
    taken = ", ".join(f"{name} {stage_s:.1f}" for name, stage_s in longest)
    left_out = ", ".join(json.loads((folder / "output.txt").read_text()).get("unchecked", ())) or "-"
    return f"| {space} | {seconds:.1f} | {taken} | {left_out} |"


def main() -> None:
    """Search the spaces one after the other, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the files of each search are kept")
    parser.add_argument("spaces", nargs="*", default=SPACES, help="names of shipped spaces")
    parser.add_argument("--device", default="cuda:0", help="which device (default %(default)s)")
    parser.add_argument("--budget", type=int, default=100, help="trials (default %(default)s)")
    parser.add_argument(
        "--until", type=float, default=1e9, metavar="S", help="begin no search after this time"
    )
    parsed = parser.parse_args()
    began = time.perf_counter()
    print("| space | whole s | stages that took longest, s | not checked |\n|---|---|---|---|", flush=True)
    for space in parsed.spaces:
        if time.perf_counter() - began < parsed.until:
            print(
                searched(space, (parsed.folder / space).resolve(), parsed.device, parsed.budget), flush=True
            )


if __name__ == "__main__":
    main()
