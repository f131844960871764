"""Sums by log_m(n) launches: a block adds up m elements, so that a launch for each level leaves one of m.

    python benchmarks/launches_per_sum.py [M ...] [--n 16777216] [--device cuda:0]

A large m needs few launches and moves few bytes: n m / (m - 1) elements are loaded in all. A small one has
little to do in each launch. Times each m as a landmark of a space that the script writes; m = 2 is a launch
for every halving.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from autotune.cli.output import emit
from autotune.cli.progress import SearchProgress, Verbosity
from autotune.cli.tables import UNKNOWN, cell, table
from autotune.core.trials import Budget
from autotune.tuning.options import Options
from autotune.tuning.single_runs import ladder
from autotune.tuning.task import Target, read_task

KERNEL = """
#include "portable.h"
#define THREADS (M < 1024 ? M : 1024)

KERNEL KERNEL_BLOCK(THREADS, 1, 1)
level(GLOBAL const int *from, GLOBAL int *to, const unsigned long n)
{
    SHARED int cells[THREADS];
    const unsigned int thread = THREAD_INDEX(x);
    const size_t first = (size_t)BLOCK_INDEX(x) * M;
    int sum = 0;
    for (size_t k = thread; k < M; k += THREADS)
        sum += first + k < n ? from[first + k] : 0;
    cells[thread] = sum;
    BARRIER();
    for (unsigned int distance = THREADS / 2; distance > 0; distance /= 2) {
        if (thread < distance)
            cells[thread] += cells[thread + distance];
        BARRIER();
    }
    if (thread == 0)
        to[BLOCK_INDEX(x)] = cells[0];
}
"""
REFERENCE = """
import numpy as np


def reference(inputs, sizes):
    return {"sum": inputs["x"].sum(dtype=np.int64, keepdims=True).astype(np.int32)}
"""
DEFAULT = (2, 4, 16, 64, 256, 1024, 4096, 16384)  # powers of two


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("m", nargs="*", metavar="M", type=int, default=DEFAULT, help="powers of two")
    parser.add_argument("--n", type=int, default=2**24, help="elements (default %(default)s)")
    parser.add_argument("--device", default="cuda:0", help="the device (default %(default)s)")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, SearchProgress(Verbosity.QUIET) as progress:
        folder = Path(name)
        for file, text in (("level.cu", KERNEL), ("level.py", REFERENCE)):
            (folder / file).write_text(text)
        (folder / "level.yaml").write_text(space(parsed.m, parsed.n))
        task = read_task(Target(folder / "level.yaml", parsed.device), progress.stage)
        steps = ladder(task, Options(budget=Budget(), journal=folder / "levels.jsonl"), progress)
    rows = []
    for m, trial in zip(parsed.m, steps.values(), strict=True):
        rate = UNKNOWN if trial.time_ms is None else f"{4e-6 * parsed.n / trial.time_ms:.4g}"
        elements = f"{sum(sizes_of(parsed.n, m)[:-1]):,}"
        rows.append((str(m), str(levels(parsed.n, m)), elements, cell(trial.time_ms), rate, trial.detail))
    emit(table(("m", "launches", "elements loaded", "ms", "GB/s of n", "failed"), rows, optional=("failed",)))


def sizes_of(n: int, m: int) -> list[int]:
    """What is left before each level, and after the last."""
    left = [n]
    while left[-1] > 1 or len(left) == 1:
        left.append(-(-left[-1] // m))
    return left


def levels(n: int, m: int) -> int:
    """The launches of a sum."""
    return len(sizes_of(n, m)) - 1


def space(ms: Sequence[int], n: int) -> str:
    """A space with a landmark for each m, whose launches are written out."""
    most = levels(n, min(ms))
    return "\n".join(
        [
            "schema: 1\nkernel: level\nsource: level.cu\nreference: level.py\ndtypes: [int32]",
            f"sizes: {{default: {{n: {n}}}}}",
            "verify_sizes: [{n: 1}, {n: 1003}]",
            f"parameters: {{M: [{', '.join(map(str, ms))}]}}",
            f"default: {{M: {ms[-1]}}}",
            "landmarks:",
            *(f"  m{m}: {{M: {m}}}" for m in ms),
            "derived:",
            *(
                f"  N{level}: {'n' if level == 0 else f'ceil_div(N{level - 1}, M)'}"
                for level in range(most + 1)
            ),
            "arguments:",
            "  - {name: x, dtype: int32, shape: [n], role: in, fill: {integers: [-100, 100]}}",
            "  - {name: one, dtype: int32, shape: [N1], role: scratch}",
            "  - {name: other, dtype: int32, shape: [N1], role: scratch}",
            "  - {name: sum, dtype: int32, shape: [1], role: out}",
            *(f"  - {{name: n{level}, dtype: uint64, value: N{level}}}" for level in range(most)),
            "launch:",
            *launches(most),
            "verify: {rtol: 0, atol: 0}\nwork: {bytes: 4 * n}\n",
        ]
    )


def launches(most: int) -> Iterator[str]:
    """A launch for each level, the last of which writes the sum."""
    for level in range(most):
        source = "x" if level == 0 else ("one", "other")[(level - 1) % 2]
        is_needed = "True" if level == 0 else f"N{level} > 1"
        for target, when in (
            ("sum", f"N{level + 1} == 1"),
            (("one", "other")[level % 2], f"N{level + 1} > 1"),
        ):
            yield (
                f"  - {{entry: level, grid: [N{level + 1}], block: ['min(M, 1024)'], "
                f"arguments: [{source}, {target}, n{level}], when: '{is_needed} and {when}'}}"
            )


if __name__ == "__main__":
    main()
