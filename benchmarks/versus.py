"""Time the kernels that others know well beside what else does their work: a table of docs/measured-times.md.

    python benchmarks/versus.py FOLDER [--only KERNEL ...] [--tune-host-s SECONDS] [--until SECONDS]

Runs `autotune versus` for each kernel, keeps what it prints as JSON in the folder, and prints all that the
folder has as a table. With `--tune-host-s` the host's processor is tuned first, at a size at which a trial is
short, so that it competes with more than the landmarks. `--until` leaves out what has not begun by then.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SIZES = {  # of each kernel: those of the sweep, and the others
    "reduce": ("n=32768:134217728:x64", {}),
    "matmul": ("m=256:2048:x8", {"n": 2048, "k": 2048}),
    "matadd": ("rows=16:16384:x32", {"columns": 4096}),
    "transpose": ("rows=64:4096:x64", {"columns": 4096}),
    "convolution": ("height=128:2048:x16", {"width": 2048}),
}
HOST_SIZES = {  # at which the host is tuned
    "reduce": {"n": 2**24},
    "matmul": {"m": 512, "n": 512, "k": 512},
    "matadd": {"rows": 2048, "columns": 4096},
    "transpose": {"rows": 2048, "columns": 4096},
    "convolution": {"width": 2048, "height": 128},
}
HOST = "opencl:0"
COLUMNS = (
    *("tuned", "default", "naive", "library"),
    *("numpy, one thread", "numpy, all cores", "CPU, all cores", "C, scalar", "C, vectors", "C, all cores"),
)
COPIES = ("pinned copies", "pageable copies")


def main() -> None:
    """Run what was asked for, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", choices=SIZES, default=list(SIZES), help="none: only the table")
    parser.add_argument("--tune-host-s", type=float, default=0.0)
    parser.add_argument("--until", type=float, default=float("inf"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for kernel in options.only:
        if time.perf_counter() - BEGAN > options.until:
            print(f"{kernel}: left out, for {options.until:g} s have passed", file=sys.stderr)
            continue
        if options.tune_host_s:
            tune_host(kernel, options.tune_host_s)
        time_all(kernel, options.folder)
    print(table(options.folder))


def tune_host(kernel: str, seconds: float) -> None:
    """Search for the best configuration of the host's processor, and print how many were tried."""
    sizes = HOST_SIZES[kernel]
    limits = ("--time", f"{seconds:g}", "--no-sanitizer", "-q")
    found = autotune("search", kernel, "--device", HOST, *options_of(sizes), *limits)
    print("\n".join(found.splitlines()[:3]), file=sys.stderr)


def time_all(kernel: str, folder: Path) -> None:
    """Keep what `autotune versus` finds."""
    swept, others = SIZES[kernel]
    began = time.perf_counter()
    what = ("--sweep", swept, *options_of(others), "--measure", "warm", "--cpu", HOST)
    found = autotune("versus", kernel, *what, "-q", "--json")
    if found:
        (folder / f"{kernel}.json").write_text(found)
    print(f"{kernel}: {time.perf_counter() - began:.0f} s", file=sys.stderr)


def options_of(sizes: dict[str, Any]) -> Iterator[str]:
    """Sizes on the command line."""
    for name, value in sizes.items():
        yield from ("--size", f"{name}={value}")


def autotune(*words: str) -> str:
    """What a command prints; nothing if it fails."""
    done = subprocess.run([sys.executable, "-m", "autotune", *words], stdout=subprocess.PIPE, text=True)
    return "" if done.returncode else done.stdout


def table(folder: Path) -> str:
    """A row of Markdown for each kernel and size, then what ran in it."""
    lines = [f"| problem | {' | '.join((*COLUMNS, *COPIES))} | pays off |", "|---" * (len(COLUMNS) + 4) + "|"]
    settings = []
    for kernel in SIZES:
        file = folder / f"{kernel}.json"
        for one in json.loads(file.read_text()) if file.exists() else ():
            sizes = " x ".join(f"{value:,}" for value in one["sizes"].values())
            lines.append(f"| {kernel}, {sizes} | {' | '.join(row(one))} |")
            settings.append(f"- {kernel}, {sizes}: {'; '.join(details(one))}")
    return "\n".join([*lines, "", *settings])


def row(one: dict[str, Any]) -> Iterator[str]:
    """The times of one problem, the tuned kernel's with its copies last; of several libraries the fastest."""
    times: dict[str, float] = {}
    for each in one["contenders"]:
        if each["time_ms"]:
            column = column_of(each["name"])
            times[column] = min(each["time_ms"], times.get(column, each["time_ms"]))
    for column in COLUMNS:
        yield f"{times[column]:.3g}" if column in times else "-"
    for copies in ("pinned_ms", "pageable_ms"):
        yield f"{times['tuned'] + one[copies]:.3g}" if one[copies] is not None else "-"
    yield {True: "yes", False: "no", None: "-"}[one["pays"]]


def details(one: dict[str, Any]) -> Iterator[str]:
    """What ran for each contender."""
    for each in one["contenders"]:
        yield f"{each['name']}: {each['detail']}"


def column_of(name: str) -> str:
    """The column of a contender: every library has the same one."""
    if name == "numpy_all_cores":
        return "numpy, all cores"
    if name.startswith("numpy"):
        return "numpy, one thread"
    return name if name in COLUMNS else "library"


BEGAN = time.perf_counter()
if __name__ == "__main__":
    main()
