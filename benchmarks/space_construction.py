"""How long it takes to find all valid configurations of a space, beside Kernel Tuner on the same space.

    python benchmarks/space_construction.py [--spaces NAME...] [--limit SECONDS]

Every figure comes from a fresh process: time is the median of several constructions, imports and the
reading of the file left out, memory the peak resident size of the whole process after the first one.
Kernel Tuner is given the same values and the same constraint texts, with its own defaults.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SPACES = Path(__file__).parent / "spaces"
NAMES = ("gemm", "gemm_wide", "convolution")
REPEATS = 7


def main() -> None:
    """Print the table; with --measure, measure one space in this process and print JSON."""
    parser = argparse.ArgumentParser(description="Time the construction of classical spaces.")
    parser.add_argument("--spaces", nargs="+", choices=NAMES, default=NAMES, help="default: all")
    parser.add_argument(
        "--limit", type=float, default=120.0, help="seconds one process may take (default 120)"
    )
    parser.add_argument("--measure", nargs=2, metavar=("TOOL", "SPACE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        tool, name = options.measure
        print(json.dumps(measure(TOOLS[tool](SPACES / f"{name}.yaml"))))
        return
    print(f"{'space':<12} {'tool':<13} {'combinations':>12} {'valid':>8} {'seconds':>9} {'peak MB':>8}")
    for name in options.spaces:
        for tool in TOOLS:
            print(f"{name:<12} {tool:<13} {row(tool, name, options.limit)}", flush=True)


def row(tool: str, name: str, limit_s: float) -> str:
    """One line of figures, or why there are none."""
    command = [sys.executable, __file__, "--measure", tool, name]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return f"no result within {limit_s:g} s"
    if child.returncode != 0:
        return f"failed: {child.stderr.strip().splitlines()[-1]}"
    figures = json.loads(child.stdout.splitlines()[-1])
    return "{combinations:>12,} {valid:>8,} {seconds:>9.3f} {peak_mb:>8.0f}".format(**figures)


def measure(build: Callable[[], tuple[int, int]]) -> dict[str, float]:
    """Time repeated constructions; fewer of them when one takes long."""
    times: list[float] = []
    peak_mb = 0.0
    while len(times) < REPEATS and sum(times) < 20:
        began = time.perf_counter()
        combinations, valid = build()
        times.append(time.perf_counter() - began)
        peak_mb = peak_mb or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = statistics.median(times)
    return {"combinations": combinations, "valid": valid, "seconds": seconds, "peak_mb": peak_mb}


def with_autotune(path: Path) -> Callable[[], tuple[int, int]]:
    """Construct by binding the space file to a device."""
    from autotune.core.records import DeviceInfo
    from autotune.space import bind, load_space, problem_of

    device = DeviceInfo(
        backend="none",
        name="none",
        slug="none",
        kind="gpu",
        vendor="none",
        architecture="none",
        compute_units=1,
        warp_size=32,
        max_threads_per_block=2**31 - 1,  # the literature counts blocks of any size
        shared_bytes_per_block=49_152,
        registers_per_block=None,
        memory_bytes=2**30,
        memory_bandwidth_bytes_per_s=None,
        cache_bytes=2**20,
        has_shuffle=True,
        driver="none",
        runtime="none",
    )
    spec = load_space(path)

    def build() -> tuple[int, int]:
        space = bind(spec, device, problem_of(spec, device))
        return space.cartesian, len(space)

    return build


def with_kernel_tuner(path: Path) -> Callable[[], tuple[int, int]]:
    """Construct Kernel Tuner's Searchspace from the same values and texts."""
    import math

    from kernel_tuner.searchspace import Searchspace

    from autotune.space import load_space

    spec = load_space(path)
    parameters: dict[str, Any] = {item.name: list(item.values) for item in spec.parameters}
    restrictions = [constraint.text for constraint in spec.constraints]
    for name, text in spec.derived.items():  # it has no derived names
        restrictions = [re.sub(rf"\b{name}\b", f"({text})", restriction) for restriction in restrictions]

    def build() -> tuple[int, int]:
        space = Searchspace(parameters, restrictions, max_threads=1024)
        return math.prod(len(values) for values in parameters.values()), space.size

    return build


TOOLS = {"autotune": with_autotune, "kernel_tuner": with_kernel_tuner}

if __name__ == "__main__":
    main()
