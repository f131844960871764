"""Does the content of a sparse matrix matter? Tune for a band and for a power law, and swap the winners.

    python benchmarks/csr_contents.py [--rows N] [--per-row N] [--device cuda:0]

Both matrices have the same size. Every configuration of examples/kernels/spmv.yaml is tried on each; then
each winner is verified and timed on both, in fresh processes. Exits with 1 unless the winners differ and each
is at least 10% faster on its own content than the other one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from autotune import Space, tune
from autotune.cli.progress import SearchProgress
from autotune.core.records import Config
from autotune.core.trials import Budget
from autotune.errors import AutotuneError
from autotune.tuning.options import Options
from autotune.tuning.single_runs import run_once

SPACE = Path(__file__).parents[1] / "examples" / "kernels" / "spmv.yaml"
CONTENTS = ("banded", "power_law")
TURNS = 1
MIN_ADVANTAGE = 1.1


def main() -> None:
    """Tune both contents, swap the winners and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2**20, help="of the matrix (default %(default)s)")
    parser.add_argument("--per-row", type=int, default=16, help="elements, on average (default %(default)s)")
    parser.add_argument("--device", default="cuda:0", help="which device (default %(default)s)")
    parsed = parser.parse_args()
    sizes = {"rows": parsed.rows, "per_row": parsed.per_row}
    space = Space.load(SPACE)
    winners: dict[str, Config] = {}
    with tempfile.TemporaryDirectory() as folder, SearchProgress() as progress:
        own = Options(journal=Path(folder) / "run.jsonl", budget=Budget())
        for content in CONTENTS:
            found = tune(
                space,
                device=parsed.device,
                strategy="exhaustive",
                budget=1000,
                sizes=sizes,
                data=content,
                cache=Path(folder) / "cache",
                journal=Path(folder) / f"{content}.jsonl",
            )
            winners[content] = found.best
        times_ms = {}
        for content in CONTENTS:
            task = space.bind(parsed.device, sizes, data=content)
            for winner, config in winners.items():
                trials = [run_once(task, own, progress, config) for _ in range(TURNS)]
                if failed := next((trial for trial in trials if trial.time_ms is None), None):
                    sys.exit(f"{content}, {config}: {failed.status.value}: {failed.detail}")
                times_ms[content, winner] = median(trial.time_ms for trial in trials if trial.time_ms)
    print("| content | best configuration | its time | time of the other content's best | ratio |")
    print("|---|---|---|---|---|")
    ratios = []
    for content, other in (CONTENTS, CONTENTS[::-1]):
        own_ms, other_ms = times_ms[content, content], times_ms[content, other]
        ratios.append(other_ms / own_ms)
        print(f"| {content} | {winners[content]} | {own_ms:.4g} ms | {other_ms:.4g} ms | {ratios[-1]:.2f} |")
    sys.exit(0 if min(ratios) >= MIN_ADVANTAGE else 1)


if __name__ == "__main__":
    try:
        main()
    except AutotuneError as error:
        sys.exit(f"error: {error}")
