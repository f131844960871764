"""Compare foretold times with those of the steps of ladders that do what was foretold.

    python benchmarks/foretold.py [LANDMARK ...] [--device cuda:0]

Ten steps of the shipped ladders have one trouble that a later step is without. They were chosen before any
was measured. For each, `autotune diagnose` times the step, its variant without the trouble, and the later
step. Fails if fewer than eight of ten variants are within 20% of the later step.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from autotune.cli.output import emit, say
from autotune.cli.progress import SearchProgress, Verbosity
from autotune.cli.tables import UNKNOWN, cell, table
from autotune.core.trials import Budget
from autotune.diagnosis.diagnose import diagnose, open_diagnosis
from autotune.errors import AutotuneError
from autotune.tuning.options import Options
from autotune.tuning.task import Target, read_task

SPACES = Path(__file__).parents[1] / "spaces"
STEPS = (  # space, step, its trouble
    ("transpose", "transpose0_coalesced_reads", "COALESCED"),
    ("transpose", "transpose2_tile", "NO_BANK_CONFLICTS"),
    ("reduce", "reduce2_neighbored", "NO_DIVERGENCE"),
    ("reduce", "reduce3_compact", "NO_BANK_CONFLICTS"),
    ("reduce", "reduce13_in_place_neighbored", "NO_DIVERGENCE"),
    ("matadd", "matadd0_1x256", "COALESCED"),
    ("matmul", "matmul0_naive_1x128", "COALESCED"),
    ("divergence", "divergence0_threads", "NO_DIVERGENCE"),
    ("convolution", "convolution5_vectors", "NO_BANK_CONFLICTS"),
    ("leak", "leak1_check_around_stores", "NO_BOUNDS_CHECKS"),
)
SIZES = {"matmul": {"m": 2048, "n": 2048, "k": 2048}}  # else the space's; there the first step takes a second
NEAR = 0.2  # of the later step's time
ENOUGH = 0.8  # of the steps


class Compared(NamedTuple):
    """A step, what is foretold of it, and what the later step takes."""

    step: str
    trouble: str
    time_ms: float | None
    foretold_ms: float | None = None
    other_work: str = ""
    later: str = ""
    later_ms: float | None = None

    @property
    def ratio(self) -> float | None:
        """The foretold time over the later step's."""
        return self.foretold_ms / self.later_ms if self.foretold_ms and self.later_ms else None

    @property
    def is_near(self) -> bool:
        """Whether the foretold time is that of the later step."""
        return self.ratio is not None and abs(self.ratio - 1) <= NEAR


def main() -> None:
    """Print the table; exit with 1 if too few times were foretold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("landmarks", nargs="*", metavar="LANDMARK", help="of these steps (default: all)")
    parser.add_argument("--device", default="cuda:0", help="the device (default %(default)s)")
    parsed = parser.parse_args()
    chosen = [step for step in STEPS if step[1] in (parsed.landmarks or [step[1]])]
    found = []
    for one in compared(chosen, parsed.device):
        found.append(one)
        say(f"{len(found)} of {len(chosen)}: {one.step}, {cell(one.foretold_ms)} ms foretold")
    rows = [
        (
            one.step,
            cell(one.time_ms),
            one.trouble,
            cell(one.foretold_ms),
            one.later,
            cell(one.later_ms),
            UNKNOWN if one.ratio is None else f"{one.ratio:.2f}",
            one.other_work,
        )
        for one in found
    ]
    titles = ("step", "ms", "without", "foretold ms", "later step", "ms", "foretold / later", "work")
    emit(table(titles, rows))
    near = sum(one.is_near for one in found)
    emit(f"{near} of {len(found)} within {NEAR:.0%}")
    sys.exit(near < ENOUGH * len(found))


def compared(steps: Sequence[tuple[str, str, str]], device: str) -> Iterator[Compared]:
    """Diagnose each step; one that fails has no times, and says why in the place of its work."""
    for space, name, trouble in steps:
        try:
            yield _compared(space, name, trouble, device)
        except AutotuneError as error:
            yield Compared(name, trouble, None, other_work=str(error).partition("\n")[0])


def _compared(space: str, name: str, trouble: str, device: str) -> Compared:
    options = Options(budget=Budget())
    with SearchProgress(Verbosity.QUIET) as progress:
        target = Target(SPACES / f"{space}.yaml", device, SIZES.get(space, {}))
        task = read_task(target, progress.stage)
        config = next(one.config for one in task.spec.landmarks if one.name == name)
        with open_diagnosis(task, options, progress) as context:
            whole = diagnose(context, config, cache=None)
    one = next((one for one in whole.foretold if one.trouble == trouble), None)
    if one is None:
        why = next((line for line in whole.missing if line.startswith(trouble)), "nothing is foretold")
        return Compared(name, trouble, whole.time_ms, other_work=why)
    work = "not counted" if one.other_work is None else one.other_work or "the same"
    return Compared(name, trouble, whole.time_ms, one.time_ms, work, one.landmark, one.landmark_ms)


if __name__ == "__main__":
    main()
