"""Which of 24 small bugs the test of all kernels on the CPU finds: lost tails, dropped barriers and such.

    python benchmarks/seeded_bugs.py [--only KERNEL]

Each bug is put into a shipped kernel, whose landmarks and pairwise array are then compiled and run exactly as
tests/contract/test_kernels_on_cpu.py does, up to the first configuration that fails.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autotune.devices import backend, cold_environment
from autotune.evaluation.compiler_pool import CompilerPool, compiler_opener
from autotune.evaluation.worker import Worker
from autotune.space import load_space
from tests.contract.test_kernels_on_cpu import CPU, UNOPTIMISED, instances, what_is_wrong


class SeededBug(NamedTuple):
    """A text of a kernel and what replaces it; `place` counts its occurrences from one."""

    kernel: str
    old: str
    new: str
    place: int = 1


BUGS = [
    SeededBug("reduce", "cell + distance < count", "cell + distance + 1 < count"),
    SeededBug("reduce", "rest < n", "rest + 1 < n"),
    SeededBug("reduce", "cells[0] = 0;", "cells[0] = 1;"),
    SeededBug("reduce", "BARRIER();", ";", 7),
    SeededBug("reduce", "BARRIER();", ";", 5),
    SeededBug("transpose", "BARRIER();", ";"),
    SeededBug("transpose", "row + TILE_Y <= rows", "row + TILE_Y <= rows + 1"),
    SeededBug("transpose", "column + TILE_X <= columns", "column + TILE_X <= columns + 1"),
    SeededBug("matadd", "<= columns", "<= columns + 1"),
    SeededBug("matadd", "<= rows", "<= rows + 1"),
    SeededBug("sine", "i < n", "i + 1 < n"),
    SeededBug("divergence", "i < n", "i + 1 < n"),
    SeededBug("divergence", "step < steps", "step + 1 < steps", 4),
    SeededBug("bicgk", "row + LINE(b) < rows", "row + LINE(b) + 1 < rows"),
    SeededBug("bicgk", "row + i < rows", "row + i + 1 < rows"),
    SeededBug("bicgk", "column + i < columns", "column + i + 1 < columns"),
    SeededBug("bicgk", "BARRIER();", ";", 3),
    SeededBug("convolution", "column + e < image.columns", "column + e + 1 < image.columns"),
    SeededBug("convolution", "i + e < columns", "i + e + 1 < columns"),
    SeededBug("convolution", "row < j + FILTER_SIZE", "row < j + FILTER_SIZE - 1"),
    SeededBug("convolution", "BARRIER();", ";"),
    SeededBug("matmul", "to_column + e < work.columns", "to_column + e + 1 < work.columns"),
    SeededBug("matmul", "from + BLOCK_K <= work.k", "from + BLOCK_K <= work.k + 1"),
    SeededBug("matmul", "BARRIER();", ";", 2),
]


def main() -> None:
    """Try each bug and print which configuration showed it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="KERNEL", help="only the bugs of one kernel")
    only = parser.parse_args().only
    tried = [bug for bug in BUGS if only in (None, bug.kernel)]
    count = 0
    for bug in tried:
        answer = found(bug)
        count += answer is not None
        print(f"{bug.kernel}: {bug.old} -> {bug.new} ({bug.place}): {answer or 'MISSED'}", flush=True)
    print(f"found {count} of {len(tried)}")


def found(bug: SeededBug) -> str | None:
    """The first configuration that fails, with its number and how; None if all pass."""
    device = backend(CPU.backend).list_devices()[CPU.index]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        shutil.copytree(ROOT / "kernels", Path(folder) / "kernels")
        source = Path(folder) / "kernels" / f"{bug.kernel}.cu"
        source.write_text(seeded(source.read_text(), bug))
        spec = replace(load_space(ROOT / "spaces" / f"{bug.kernel}.yaml"), source=source)
        environment = cold_environment(folder) | {"POCL_WORK_GROUP_SPECIALIZATION": "0"}
        opener = compiler_opener(CPU, device, spec.compiler)
        pool = CompilerPool(opener, workers=1, timeout_s=120, environment=environment)
        opened.callback(pool.close)
        worker = Worker(CPU, spec.reference, (), environment)
        opened.callback(worker.close)
        for number, (instance, problems) in enumerate(instances(spec, device), 1):
            binary = pool.submit(instance.source, (*instance.options, UNOPTIMISED)).result()
            failure = what_is_wrong(worker, binary, problems)
            if failure is not None:
                return f"configuration {number}, {failure.status.value}"
    return None


def seeded(text: str, bug: SeededBug) -> str:
    """The source with the bug."""
    parts = text.split(bug.old)
    if len(parts) <= bug.place:
        raise SystemExit(
            f"{bug.kernel}: has no {bug.old!r} number {bug.place}: change the bug with the kernel"
        )
    return bug.old.join(parts[: bug.place]) + bug.new + bug.old.join(parts[bug.place :])


if __name__ == "__main__":
    main()
