"""The ladder of the histogram for each of its data sets, in one table.

    python benchmarks/histogram.py --device cuda:0 [--size n=134217728]

Atomics that meet are what the ladder is about, so a step's time on even data says nothing about skewed data.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

DATA = ("even", "skewed", "equal")


def times_ms(data: str, given: list[str]) -> dict[str, float | None]:
    """The time of each step on a data set, as `autotune run --landmarks` prints it."""
    command = [
        sys.executable,
        "-m",
        "autotune",
        "run",
        "bin_counts",
        "--landmarks",
        "--data",
        data,
        "--json",
        *given,
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {row["step"]: row["time_ms"] for row in json.loads(done.stdout)}


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--device", default="cuda:0")
    options.add_argument("--size", action="append", default=[])
    parsed = options.parse_args()
    given = ["--device", parsed.device, *(f"--size={size}" for size in parsed.size)]
    found = {data: times_ms(data, given) for data in DATA}
    print(f"{'ms':32}" + "".join(f"{data:>10}" for data in DATA))
    for step in found[DATA[0]]:
        cells = (found[data].get(step) for data in DATA)
        print(f"{step:32}" + "".join(f"{'-' if cell is None else f'{cell:.4g}':>10}" for cell in cells))


if __name__ == "__main__":
    main()
