"""Wall time per configuration beside Kernel Tuner: same source, same values, both exhaustive, both verifying.

    python benchmarks/kernel_tuner_wall_time.py [--size N] [--rounds N]

The 216 configurations of Kernel Tuner's reduction example. Needs an NVIDIA GPU and the `cuda` extra.
peers/side_by_side.py has the protocol: fresh processes in turns, caches cold, the tuner's own time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from peers import side_by_side

from autotune.tuning.task import TuningTask

SPACE = Path(__file__).parent / "peers" / "reduction.yaml"


def kernel_tuner(task: TuningTask, parsed: argparse.Namespace) -> side_by_side.Figures:
    """Tune with Kernel Tuner in this process."""
    numbers = np.random.default_rng(0).random(parsed.size, np.float32)
    arguments = [np.zeros(1, np.float32), numbers, np.int32(parsed.size)]
    total = float(numbers.sum(dtype=np.float64))
    answer = [np.array([total], np.float32), None, None]
    return side_by_side.kernel_tuner(
        task, arguments, answer, 1e-4 * total, problem_size="num_blocks", grid={"grid_div_x": []}
    )


def main() -> None:
    """Run both and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=2**27, help="numbers to add up (default %(default)s)")
    side_by_side.compete(
        parser,
        SPACE,
        lambda parsed: {"n": parsed.size},
        {"autotune": lambda task, _: side_by_side.autotune(task), "kernel_tuner": kernel_tuner},
    )


if __name__ == "__main__":
    main()
