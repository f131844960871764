"""Wall time per configuration beside Kernel Tuner where compiling is expensive: a matrix product.

    python benchmarks/kernel_tuner_compile_time.py [--size N] [--limit N] [--seed N] [--rounds N]

582 configurations that take NVRTC 0.2 to 2 s each. Needs an NVIDIA GPU and the `cuda` extra.
peers/side_by_side.py has the protocol: fresh processes in turns, caches cold, the tuner's own time.

autotune tries all of them. Kernel Tuner, which compiles one after the other, tries `--limit` of them, drawn
at random with `--seed`; 0 stands for all. What the drawn ones take autotune to compile is compared with
what all take, which says how representative they are.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers import side_by_side

from autotune.core.records import Config
from autotune.tuning.task import TuningTask

SPACE = Path(__file__).parent / "peers" / "matmul.yaml"


def sample(task: TuningTask, parsed: argparse.Namespace) -> list[Config]:
    """The configurations that Kernel Tuner tries: the same ones for the same seed."""
    everything = list(task.space)
    if not 0 < parsed.limit < len(everything):
        return everything
    return random.Random(parsed.seed).sample(everything, parsed.limit)


def autotune(task: TuningTask, parsed: argparse.Namespace) -> side_by_side.Figures:
    """Tune with autotune in this process."""
    return side_by_side.autotune(task, sample(task, parsed))


def kernel_tuner(task: TuningTask, parsed: argparse.Namespace) -> side_by_side.Figures:
    """Tune with Kernel Tuner in this process."""
    n = parsed.size
    generator = np.random.default_rng(0)
    a, b = generator.random((n, n), np.float32), generator.random((n, n), np.float32)
    product = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    return side_by_side.kernel_tuner(
        task,
        [a, b, np.zeros((n, n), np.float32), np.int32(n)],
        [None, None, product, None],
        1e-4 * float(product.min()),
        problem_size=(n, n),
        grid={"grid_div_x": ["block_size_x * work_x"], "grid_div_y": ["block_size_y * work_y"]},
        sample=sample(task, parsed),
    )


def main() -> None:
    """Run both and print the table, and how representative the drawn configurations are."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=1024, help="a multiple of 256 (default %(default)s)")
    parser.add_argument(
        "--limit", type=int, default=60, help="configurations of Kernel Tuner (default %(default)s; 0: all)"
    )
    parser.add_argument("--seed", type=int, default=0, help="decides which ones (default %(default)s)")
    tuners = {"autotune": autotune, "kernel_tuner": kernel_tuner}
    found = side_by_side.compete(parser, SPACE, lambda parsed: {"n": parsed.size}, tuners)
    ours, theirs = found["autotune"], found["kernel_tuner"]
    weight = ours["sample_compile_ms"] / ours["compile_ms"]
    print(
        f"compiling takes {theirs['compile_ms']:.0f} ms a configuration in Kernel Tuner and "
        f"{ours['compile_ms']:.0f} ms in each of autotune's processes; those that Kernel Tuner tried take "
        f"{weight:.2f} of the average one's"
    )


if __name__ == "__main__":
    main()
