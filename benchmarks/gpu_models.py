"""Tune every shipped GPU space on this GPU, and measure what another model's results are worth here.

    python benchmarks/gpu_models.py tune FOLDER [SPACE ...] [--minutes 9] [--seconds 120]
    python benchmarks/gpu_models.py transfer FOLDER OTHER [SPACE ...] [--minutes 9]

`tune` searches each space and element type at its default sizes, and stores results in FOLDER/cache and
journals in FOLDER/runs. It begins no search that may last longer than `--minutes` and says what is left; the
same command goes on there. After the last call, `autotune merge FOLDER/cache --into cache` adds the results
to those of the repository.

`transfer` needs a finished `tune` of this GPU in FOLDER, and a cache with the other model's results in OTHER.
For each kernel it times in turns, in one run: this GPU's best, the other's, and the choice of `adopt` after
ten runs. It writes a line for each to FOLDER/transfer.jsonl, with the two foretold slowdowns, and prints the
table: speed in percent of this GPU's own best. Run it on both GPUs for both directions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from autotune.cli.output import emit
from autotune.cli.progress import SearchProgress
from autotune.cli.tables import table
from autotune.core.records import Config, Entry, Tier
from autotune.devices import BACKENDS
from autotune.devices.listing import find_device
from autotune.errors import AutotuneError
from autotune.plans.recheck import open_check
from autotune.processes.deadline import Deadline
from autotune.searchers.base import evaluate
from autotune.serving.cache import folders
from autotune.serving.lookup import best_config
from autotune.space import load_space
from autotune.tuning.options import Options
from autotune.tuning.remeasure import remeasure
from autotune.tuning.task import Target, TuningTask, read_task

ROOT = Path(__file__).parents[1]
ADOPTED = 10  # runs


class Problem(NamedTuple):
    """One search: a space, a device and an element type, at the default sizes."""

    space: Path
    device: str
    dtype: str

    @property
    def target(self) -> Target:
        """As the engine takes it."""
        return Target(self.space, self.device, {}, self.dtype)


def problems(device: str, names: Sequence[str]) -> Iterator[Problem]:
    """Every problem of the shipped spaces that the device takes, or of those with these names."""
    accepted = BACKENDS[device.partition(":")[0]].accepts
    for path in sorted((ROOT / "spaces").glob("*.yaml")):
        spec = load_space(path)
        if spec.dialect in accepted and (not names or path.stem in names):
            yield from (Problem(path, device, dtype) for dtype in spec.dtypes)


def tune(parsed: argparse.Namespace, deadline_s: float) -> None:
    """Search what has no result yet, until the time is over."""
    parsed.folder.mkdir(parents=True, exist_ok=True)
    left = [one for one in problems(parsed.device, parsed.spaces) if own_entry(one, parsed.folder) is None]
    for number, one in enumerate(left):
        if time.monotonic() + 1.5 * parsed.seconds > deadline_s:
            emit(
                f"{len(left) - number} left, from {one.space.stem} in {one.dtype}: run the same command again"
            )
            return
        command = [sys.executable, "-m", "autotune", "search", one.space, "--device", one.device]
        command += ["--dtype", one.dtype, "--time", f"{parsed.seconds:g}", "--cache", parsed.folder / "cache"]
        done = subprocess.run([*map(str, command)], cwd=parsed.folder)
        if done.returncode:
            emit(f"failed: {one.space.stem} in {one.dtype}")
    emit("all problems have a result, or failed above")


def own_entry(one: Problem, folder: Path) -> Entry | None:
    """This GPU's result for a problem in the folder's cache."""
    try:
        return read_task(one.target).cached_entry(folder / "cache")
    except AutotuneError:  # not valid on this GPU
        return None


def transfer(parsed: argparse.Namespace, deadline_s: float) -> None:
    """Time this GPU's best, the other's, and adopt's choice in turns; append a line for each problem."""
    path = parsed.folder / "transfer.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["kernel"], row["dtype"]) for row in rows}
    for one in problems(parsed.device, parsed.spaces):
        if (one.space.stem, one.dtype) in done or (entry := own_entry(one, parsed.folder)) is None:
            continue
        if time.monotonic() > deadline_s:
            emit("the time is over: run the same command again")
            break
        row = compared(read_task(one.target), entry, parsed)
        if row is not None:
            rows.append(row)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
    emit(table(("kernel", "type", "as it is", "adopt", "expected", "at most", "came"), map(cells, rows)))
    summary(rows)


def compared(task: TuningTask, entry: Entry, parsed: argparse.Namespace) -> dict[str, Any] | None:
    """The times of the three configurations; None if the other model has no result."""
    problem = task.space.problem
    asked = replace(
        task.device, name="another GPU", slug="another-gpu"
    )  # so that its own results are left out
    sizes: dict[str, Any] = dict(problem.sizes)
    served = best_config(
        task.spec.kernel, asked, dtype=problem.dtype, cache=parsed.other, on_miss=None, **sizes
    )
    if served.match.tier is Tier.DEFAULT:
        return None
    adopted = adopt(task, parsed)
    configs = dict.fromkeys((entry.config, served.config, *([adopted] if adopted else [])))
    with SearchProgress() as shown, open_check(task, Options(), shown, len(configs)) as context:
        trials = {trial.config: trial for trial in evaluate(context.evaluator, list(configs))}
        remeasured = remeasure(context, [trial for trial in trials.values() if not trial.failure], Deadline())
        times = {
            config: remeasured.measurements[trial.key].median_ms
            for config, trial in trials.items()
            if trial.key in remeasured.measurements
        }
    own_ms = times[entry.config]
    return {
        "kernel": task.spec.kernel,
        "dtype": problem.dtype,
        "device": task.device.name,
        "source": served.match.source_device,
        "own_ms": own_ms,
        "served_ms": times.get(served.config),
        "adopted_ms": times.get(adopted) if adopted else None,
        "expected": served.expected_slowdown,
        "at_most": served.slowdown_at_most,
    }


def adopt(task: TuningTask, parsed: argparse.Namespace) -> Config | None:
    """The choice of `autotune search --engine adopt` from the other model's cache; None if it fails."""
    folder = parsed.folder / "adopted" / f"{task.spec.kernel}.{task.space.problem.dtype}"
    for device in folders(str(parsed.other)):
        (folder / "cache").mkdir(parents=True, exist_ok=True)
        target = folder / "cache" / device
        if not target.exists():
            target.symlink_to((parsed.other / device).resolve(), target_is_directory=True)
    command = [sys.executable, "-m", "autotune", "adopt", str(task.spec.path), "--device", parsed.device]
    command += ["--dtype", task.space.problem.dtype, "--runs", str(ADOPTED), "--cache", "cache"]
    done = subprocess.run(command, cwd=folder)
    found = task.cached_entry(folder / "cache")
    return found.config if done.returncode == 0 and found else None


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""

    def share(name: str) -> str:
        return f"{row['own_ms'] / row[name]:.1%}" if row[name] else "-"

    def factor(name: str) -> str:
        return f"{row[name]:.2f}" if row[name] else "-"

    came = f"{row['served_ms'] / row['own_ms']:.2f}" if row["served_ms"] else "failed"
    shares = (share("served_ms"), share("adopted_ms"))
    return (row["kernel"], row["dtype"], *shares, factor("expected"), factor("at_most"), came)


def summary(rows: Iterable[dict[str, Any]]) -> None:
    """Print how well adopt did, how often the bound held, and foretold over true."""
    timed = [row for row in rows if row["served_ms"]]
    adopted = [row["own_ms"] / row["adopted_ms"] for row in timed if row["adopted_ms"]]
    bound = [row["served_ms"] / row["own_ms"] <= row["at_most"] for row in timed if row["at_most"]]
    ratios = [row["expected"] * row["own_ms"] / row["served_ms"] for row in timed if row["expected"]]
    if adopted:
        emit(f"adopt: mean {sum(adopted) / len(adopted):.1%}, worst {min(adopted):.1%}")
    if bound:
        emit(f"at most: held in {sum(bound)} of {len(bound)}")
    if ratios:
        emit(f"foretold over true: median {median(ratios):.2f}")


def main() -> None:
    """Tune, or measure the transfer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    for name, run in (("tune", tune), ("transfer", transfer)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("folder", type=Path, help="of results and journals")
        if run is transfer:
            command.add_argument("other", type=Path, help="a cache with the other model's results")
        else:
            command.add_argument("--seconds", type=float, default=120.0, help="of each search")
        command.add_argument("spaces", nargs="*", metavar="SPACE", help="names (default: all)")
        command.add_argument("--device", default="cuda:0", help="backend and number (default %(default)s)")
        command.add_argument("--minutes", type=float, default=9.0, help="begin nothing after so long")
    parsed = parser.parse_args()
    parsed.folder = parsed.folder.resolve()
    try:
        emit(f"on {find_device(parsed.device)[1].name}")
        parsed.run(parsed, time.monotonic() + 60 * parsed.minutes)
    except AutotuneError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
