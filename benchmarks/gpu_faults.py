"""Faults in a search: every kind is injected several times, and the right winner has to be named.

    python benchmarks/gpu_faults.py [--device cuda:0] [--timeout 5] [--seed 0]

A space of 212 configurations (faults/faults.yaml), searched in random order: 180 healthy ones, each with a
time of its own, and four of each of eight faults, which would win if nobody noticed them. Checked: the status
and the reason of every trial, the winner, which is known by construction, and that the device is healthy:
before and after, a fresh process verifies and times the default configuration. The processes that the search
starts for the device are counted. Exits with 1 if anything is not as it should be. `--device fake` runs the
same on the fake device, where faults are signals and exceptions.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from autotune.cli.progress import SearchProgress
from autotune.core.trials import Budget, Status, Trial
from autotune.errors import AutotuneError
from autotune.evaluation import worker
from autotune.processes.child import Child
from autotune.searchers.base import evaluate
from autotune.tuning.context import FULL_POLICY, open_context
from autotune.tuning.journaled_task import with_journal
from autotune.tuning.options import Options
from autotune.tuning.result import SearchResult
from autotune.tuning.task import Target, TuningTask, read_task
from autotune.tuning.tuner import search

WINNER = {"FAULT": "none", "TENS": 1, "ONES": 0}
EXPECTED = {  # status, and words of the reason by the driver
    "none": ("ok", ""),
    "illegal_access": ("crashed", "ILLEGAL_ADDRESS"),
    "misaligned": ("crashed", "MISALIGNED_ADDRESS"),
    "endless": ("timeout", "did not end within"),
    "stack_overflow": ("crashed", ""),
    "change_input": ("wrong_result", "changed its input x["),
    "too_many_threads": ("launch_error", ""),
    "too_much_shared": ("launch_error", ""),
    "too_many_registers": ("launch_error", ""),
}


class CountedChild(Child):
    """The device's process; says how many of them there were."""

    started = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        type(self).started += 1
        super().__init__(*arguments, **options)


def space_file(folder: Path, device: str) -> Path:
    """A copy of the space, for the fake device with that device's kernel."""
    shutil.copytree(Path(__file__).parent / "faults", folder, dirs_exist_ok=True)
    path = folder / "faults.yaml"
    if device.startswith("fake"):
        text = path.read_text().replace("dialect: cuda", "dialect: python")
        path.write_text(text.replace("source: faults.cu", "source: fake.py"))
    return path


def check_health(task: TuningTask, folder: Path) -> float:
    """Verify and time the default in this process's own worker; its time in ms."""
    options = Options(journal=folder / "health.jsonl", binary_cache=False, compilers=1)
    with (
        SearchProgress() as progress,
        open_context(with_journal(task, options), options, progress, FULL_POLICY) as context,
    ):
        (trial,) = evaluate(context.evaluator, [task.spec.default])
    if trial.time_ms is None:
        sys.exit(f"the default configuration fails: {trial.status.value}: {trial.detail}")
    return trial.time_ms


def health(parsed: argparse.Namespace) -> float:
    """The default's time in ms, from a fresh process; exits when that process cannot tell it."""
    command = [sys.executable, __file__, "--device", parsed.device, "--health"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("the device is not healthy, see above")
    return float(done.stdout.splitlines()[-1])


def run_search(task: TuningTask, parsed: argparse.Namespace, folder: Path) -> SearchResult:
    """Search the whole space in random order, counting the device's processes."""
    worker.Child = CountedChild  # type: ignore[attr-defined]
    options = Options(
        engine="random",
        budget=Budget(trials=len(task.space)),
        seed=parsed.seed,
        timeout_s=parsed.timeout,
        journal=folder / "journal.jsonl",
        cache=folder / "cache",
        binary_cache=False,
    )
    with SearchProgress() as progress:
        return search(task, options, progress)


def complaints(result: SearchResult, device: str) -> list[str]:
    """What is not as it should be."""
    found = [
        f"{trial.config}: {trial.status.value} ({trial.detail}), expected {' '.join(wanted)}"
        for trial in result.trials
        for wanted in [EXPECTED[str(trial.config["FAULT"])]]
        if not _is_as_expected(trial, wanted, device)
    ]
    if dict(result.winner.config) != WINNER:
        found.append(f"the winner is {result.winner.config}, expected {WINNER}")
    if CountedChild.started < 2 + fatal(result):
        found.append(f"{fatal(result)} trials were fatal, but only {CountedChild.started} processes started")
    if len(result.trials) != len(result.task.space):
        found.append(f"{len(result.trials)} trials, expected {len(result.task.space)}")
    return found


def fatal(result: SearchResult) -> int:
    """How many trials cost the device's process."""
    return sum(trial.status in (Status.CRASHED, Status.TIMEOUT) for trial in result.trials)


def _is_as_expected(trial: Trial, wanted: tuple[str, str], device: str) -> bool:
    status, words = wanted
    exact = device.startswith("cuda")  # other back-ends word their errors in other ways
    has_reason = status == "ok" or (bool(trial.detail) and (words in trial.detail or not exact))
    return trial.status.value == status and has_reason


def print_table(result: SearchResult) -> None:
    """A line per kind: how many, how they ended, what one took, and a reason."""
    print(f"\n{'kind':20}{'trials':>7}  {'statuses':16}{'s each':>7}  reason of the first")
    for kind in EXPECTED:
        trials = [trial for trial in result.trials if trial.config["FAULT"] == kind]
        statuses = ", ".join(sorted({trial.status.value for trial in trials}))
        each_s = sum(trial.cost_s for trial in trials) / len(trials)
        print(f"{kind:20}{len(trials):7}  {statuses:16}{each_s:7.2f}  {trials[0].detail}")


def main() -> None:
    """Check the device, search, check it again, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda:0", help="cuda:N, pycuda:N or fake (default %(default)s)")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds a trial (default %(default)g)")
    parser.add_argument("--seed", type=int, default=0, help="decides the order (default %(default)s)")
    parser.add_argument("--health", action="store_true", help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            task = read_task(Target(space_file(folder / "space", parsed.device), parsed.device))
            if parsed.health:
                print(check_health(task, folder))
                return
            before_ms = health(parsed)
            began = time.perf_counter()
            result = run_search(task, parsed, folder)
            wall_s = time.perf_counter() - began
        except AutotuneError as error:
            sys.exit(f"error: {error}")
    after_ms = health(parsed)
    print_table(result)
    # the first process and the one of the last round are there without any fault, too
    print(
        f"\n{len(result.trials)} trials on {task.device.name} in {wall_s:.1f} s; the device's process was "
        f"started {CountedChild.started} times, {CountedChild.started - 2} of them after a fault; "
        f"{fatal(result)} trials were fatal\n"
        f"winner: {result.winner.config}, {result.final.median_ms:.4f} ms\n"
        f"the default in a fresh process: {before_ms:.4f} ms before, {after_ms:.4f} ms after"
    )
    wrong = complaints(result, parsed.device)
    print("\n".join(wrong) or "every trial has the status and the reason it should have; the winner is right")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
