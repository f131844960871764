"""How often a search on an unsteady machine still names the best configuration.

    python benchmarks/unsteady.py [--searches 100] [--only drift]

Whole searches on the fake device, of all of 150 configurations in random order, in this process and on a
clock of its own: a kernel says how long it truly takes, and a model of a machine, by seed, what the stopwatch
reads. The evaluator, the rules that end sampling and the last round are the real ones. The fastest
configurations are 0%, 0.3%, 0.8%, 1.4%, 2.1%, 2.8% ... slower than the best of 1 ms, the slowest takes 10 ms.

Columns: searches that name the best as winner, or as winner or tie; the most that a winner is truly slower;
how often the winner's interval covers its true time (where the machine has one true time); how many ties
there are; device time of the search and of the last round, flushes included, in ms.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

from autotune.cli.progress import SearchProgress
from autotune.core.records import Config
from autotune.core.trials import Budget, Failure, Measurement
from autotune.devices.fake import FakeCompiler, FakeDevice
from autotune.evaluation import device_process, measure
from autotune.evaluation.instance import KernelInstance
from autotune.evaluation.work_item import WorkItem
from autotune.tuning import last_round, shared_processes, tuner
from autotune.tuning.last_round import remeasure_and_check
from autotune.tuning.options import Options
from autotune.tuning.result import SearchResult
from autotune.tuning.task import Target, TuningTask, read_task

CONFIGURATIONS = 150
BESTS = 9  # that are equal in the row of equals
FLUSH_MS, LAUNCH_MS, JOB_MS = 0.1, 0.05, 4.0

SPACE = """\
schema: 1
kernel: unsteady
dialect: python
source: unsteady.py
reference: reference.py
sizes: {{default: {{n: 16}}}}
dtypes: [int32]
parameters:
  A: {values}
default: {{A: {default}}}
arguments:
  - {{name: y, dtype: int32, shape: [n], role: out}}
  - {{name: n, dtype: int32, value: n}}
launch:
  - {{entry: fill, grid: [1], block: [1], arguments: [y, n]}}
"""
REFERENCE = """\
import numpy as np
def reference(inputs, sizes):
    return {"y": np.full(sizes["n"], 7, np.int32)}
"""
KERNEL = """\
def fill(grid, block, y, n):
    y.view("int32")[:n] = 7
    return (A >> 8) * 1e-6
"""

Factor = Callable[[float, Random], float]  # from seconds since the start: what a run's time is multiplied by


def _steady(now_s: float, random: Random) -> float:
    return random.gauss(1, 0.01)


def _slow_runs(now_s: float, random: Random) -> float:
    return random.gauss(1, 0.005) * (3 if random.random() < 0.2 else 1)


def _bimodal(now_s: float, random: Random) -> float:
    return random.gauss(1, 0.005) * (1.1 if random.random() < 0.5 else 1)


def _drift(now_s: float, random: Random) -> float:
    return random.gauss(1, 0.005) * (1 + 0.05 * now_s)


def _heavy(now_s: float, random: Random) -> float:
    return random.gauss(1, 0.005) + (random.expovariate(5) if random.random() < 0.3 else 0)


class _Switching:
    """A machine that is in one of two states, for exponentially distributed times."""

    def __init__(self, seed: int, factor: float, normal_s: float, other_s: float) -> None:
        self._random, self._factor, self._lasts_s = Random(seed), factor, (normal_s, other_s)
        self._state, self._until_s = 0, self._random.expovariate(1 / normal_s)

    def __call__(self, now_s: float, random: Random) -> float:
        while now_s > self._until_s:
            self._state = 1 - self._state
            self._until_s += self._random.expovariate(1 / self._lasts_s[self._state])
        return random.gauss(1, 0.005) * (self._factor if self._state else 1)


MACHINES: Mapping[str, Callable[[int], Factor]] = {
    "steady, 1% noise": lambda seed: _steady,
    "nine equals": lambda seed: _steady,
    "20% of runs 3x slower": lambda seed: _slow_runs,
    "30% of runs delayed": lambda seed: _heavy,
    "two modes, 10% apart": lambda seed: _bimodal,
    "clock steps of 20%": lambda seed: _Switching(seed, 1.2, 0.4, 0.4),
    "drift": lambda seed: _drift,
    "bursts of others, 3x": lambda seed: _Switching(seed, 3.0, 0.5, 0.1),
}
HAS_TRUE_TIME = ("steady, 1% noise", "nine equals")


class Machine(FakeDevice):
    """A fake device whose runs take what a model makes of their true times, on a clock of its own."""

    def __init__(self, factor: Factor, seed: int) -> None:
        super().__init__()
        self._factor, self._random = factor, Random(seed)
        self.now_ms = 0.0

    def run(
        self,
        program: Any,
        launches: Any,
        arguments: Any,
        repeats: int = 1,
        graph: bool | None = None,
        warm_first: bool = False,
    ) -> float:
        """A run as the stopwatch reads it."""
        true_ms = super().run(program, launches, arguments, 1)
        found_ms = sum(true_ms * self._factor(self.now_ms / 1e3, self._random) for _ in range(repeats))
        self.now_ms += found_ms + LAUNCH_MS
        return found_ms

    def flush_cache(self) -> None:
        """Takes time."""
        self.now_ms += FLUSH_MS


class InProcess:
    """A worker without a process: it runs everything here, at once."""

    compared = frozenset({"y"})  # what the reference returns

    def __init__(self, device: Machine, setting: device_process.DeviceSetting) -> None:
        self._state = device_process.DeviceState(setting)
        self._state.device = self._device = device

    def start(self, *, waits: bool = True) -> None:
        """There is nothing to start, to replace or to end."""

    end = discard_child = replace_if_used = begin_spare = start

    def load(self, *workloads: Any) -> None:
        """Everything is at hand."""

    def run(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        timeout_s: float,
        workloads: Any = (),
        **options: Any,
    ) -> Any:
        """Call the function."""
        return function(self._state, *arguments, **options)

    def begin_item(self, item: WorkItem, timeout_s: float) -> Callable[[], Measurement | Failure]:
        """Run the configuration; nothing fails here, so nothing is repeated alone."""
        self._device.now_ms += JOB_MS
        outcome = device_process.verify_and_time(self._state, item)
        return lambda: outcome


class Compilers:
    """Compilers without processes."""

    size = 1

    def compile(self, instance: KernelInstance) -> Future[Any]:
        """The binary, at once."""
        future: Future[Any] = Future()
        future.set_result(FakeCompiler().compile(instance.source, instance.options))
        return future

    def close(self) -> None:
        """There is nothing to close."""


@dataclass(frozen=True)
class Found:
    """What one search came to."""

    is_best: bool
    is_tied: bool
    loss: float
    covers: bool
    ties: int
    search_ms: float
    final_ms: float


def true_ms(config: Config) -> float:
    """What a configuration takes without noise."""
    return (int(config["A"]) >> 8) * 1e-6


def bound_space(machine: str, folder: Path) -> TuningTask:
    """A space whose parameter is the true time in ns and, lest two be equal, the rank."""
    ratios = [10 ** ((rank / CONFIGURATIONS) ** 1.3) for rank in range(CONFIGURATIONS)]
    if machine == "nine equals":
        ratios = [1.0] * BESTS + [1.3 * ratio for ratio in ratios[BESTS:]]
    values = [round(ratio * 1e6) << 8 | rank for rank, ratio in enumerate(ratios)]
    (folder / "unsteady.yaml").write_text(SPACE.format(values=values, default=values[CONFIGURATIONS // 2]))
    (folder / "unsteady.py").write_text(KERNEL)
    (folder / "reference.py").write_text(REFERENCE)
    return read_task(Target(folder / "unsteady.yaml", "fake"))


def one_search(task: TuningTask, machine: str, seed: int, folder: Path) -> Found:
    """Search the space on a fresh machine."""
    device = Machine(MACHINES[machine](seed), seed)
    options = Options(
        engine="random",
        budget=Budget(trials=CONFIGURATIONS),
        seed=seed,
        journal=folder / "journal.jsonl",
        fresh=True,
        transfer=False,
        cache=folder / f"cache{seed}",
    )
    began_final_ms: list[float] = []

    def noted(*arguments: Any) -> Any:
        began_final_ms.append(device.now_ms)
        return remeasure_and_check(*arguments)

    clock = SimpleNamespace(perf_counter=lambda: device.now_ms / 1e3)
    with ExitStack() as patched:
        for name, module in list(sys.modules.items()):
            if hasattr(module, "time") and name.startswith(("autotune.tuning.", measure.__name__)):
                patched.enter_context(patch.object(module, "time", clock))
        worker = patch.object(
            shared_processes, "Worker", lambda setting, *_, **__: InProcess(device, setting)
        )
        patched.enter_context(worker)
        patched.enter_context(patch.object(shared_processes, "CompilerPool", lambda *_, **__: Compilers()))
        patched.enter_context(patch.object(last_round, "remeasure_and_check", noted))
        patched.enter_context(patch.object(SearchProgress, "_say", lambda *_, **__: None))
        with SearchProgress() as progress:
            result = tuner.search(task, options, progress)
    return _judged(result, min(map(true_ms, task.space)), began_final_ms[0], device.now_ms)


def _judged(result: SearchResult, best_ms: float, search_ms: float, ended_ms: float) -> Found:
    winner_ms = true_ms(result.winner.config)
    low, high = result.final.interval_ms
    return Found(
        is_best=winner_ms == best_ms,
        is_tied=best_ms in (winner_ms, *map(true_ms, result.ties)),
        loss=winner_ms / best_ms - 1,
        covers=low <= winner_ms <= high,
        ties=len(result.ties),
        search_ms=search_ms,
        final_ms=ended_ms - search_ms,
    )


def main() -> None:
    """Print one row for each machine."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--searches", type=int, default=100, help="of each machine (default %(default)s)")
    parser.add_argument("--only", choices=MACHINES, action="append", help="this machine only")
    parsed = parser.parse_args()
    print("| machine | best | best or tie | worst loss | covers | ties | search ms | last round ms |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for machine in parsed.only or MACHINES:
            task = bound_space(machine, folder)
            found = [one_search(task, machine, seed, folder) for seed in range(parsed.searches)]
            covers = mean(one.covers for one in found) if machine in HAS_TRUE_TIME else math.nan
            shares = [mean(one.is_best for one in found), mean(one.is_tied for one in found)]
            cells = [machine, *(f"{share:.0%}" for share in shares), f"{max(one.loss for one in found):.1%}"]
            cells += [
                "-" if math.isnan(covers) else f"{covers:.0%}",
                f"{mean(one.ties for one in found):.1f}",
            ]
            times_ms = [mean(one.search_ms for one in found), mean(one.final_ms for one in found)]
            cells += [f"{time_ms:,.0f}" for time_ms in times_ms]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
