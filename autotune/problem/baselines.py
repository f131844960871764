"""Times baselines, the functions of a reference file that a kernel is compared with, in a separate process.

A function `baseline_NAME(inputs, sizes)` prepares a run, for example by bringing the inputs to a GPU, and
returns two functions: one that begins a run, and one that waits until all runs have ended. On the host,
`baseline_numpy` runs on one thread, and `baseline_numpy_all_cores` on as many as its libraries have.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits

from autotune.errors import BrokenReference
from autotune.problem.inputs import draw_inputs
from autotune.problem.problem_instance import ProblemInstance
from autotune.problem.reference import BASELINE, call, functions_of

Run = Callable[[], object]

NUMPY, ALL_CORES = "numpy", "numpy_all_cores"
_ROUND_MS = 5.0  # runs are repeated until they take this long
_MAX_REPEATS = 200
_ROUNDS = 3
_LONG_MS = 500.0  # a longer run is not repeated


@dataclass(frozen=True)
class BaselineTime:
    """The time of one run of a baseline in ms; None if it failed, for the reason in `detail`."""

    name: str
    time_ms: float | None
    detail: str = ""


class Baselines:
    """The baselines of a reference file, with the inputs of one problem."""

    def __init__(self, reference: Path, problem: ProblemInstance) -> None:
        self._path = reference
        self._sizes = dict(problem.definition.sizes)
        self._inputs = draw_inputs(problem.definition, problem.arrays)

    def times(self) -> tuple[BaselineTime, ...]:
        """The time of every baseline; if none uses numpy, the reference is timed instead."""
        found = functions_of(self._path)
        named = {name.removeprefix(BASELINE): one for name, one in found.items() if name.startswith(BASELINE)}
        timed = tuple(self._time(name, one) for name, one in named.items())
        if NUMPY in named:
            return timed
        run = partial(found["reference"], self._inputs, self._sizes)
        with threadpool_limits(1):
            return (BaselineTime(f"{NUMPY} (reference)", _time_ms(run, lambda: None)), *timed)

    def _time(self, name: str, prepare: Callable[..., tuple[Run, Run]]) -> BaselineTime:
        what = f"{prepare.__name__}(inputs, sizes)"
        try:
            with threadpool_limits(1) if name == NUMPY else nullcontext():
                run, wait = call(self._path, prepare, what, self._inputs, self._sizes)
                return BaselineTime(name, call(self._path, _time_ms, what, run, wait))
        except BrokenReference as error:
            return BaselineTime(name, None, str(error).partition("\n")[0].rpartition(" raised ")[2])


def baseline_times(state: Baselines) -> tuple[BaselineTime, ...]:
    """For a child process: the times of all baselines."""
    return state.times()


def _time_ms(run: Run, wait: Run) -> float:
    """The least mean time of a run over several rounds of runs that begin together, after a warm-up."""
    first_ms = elapsed_ms(run, wait)
    if first_ms > _LONG_MS:
        return first_ms
    once_ms = elapsed_ms(run, wait)
    repeats = max(1, min(_MAX_REPEATS, int(_ROUND_MS / max(once_ms, 1e-3))))
    return min(elapsed_ms(run, wait, repeats) for _ in range(_ROUNDS))


def elapsed_ms(run: Run, wait: Run = lambda: None, repeats: int = 1) -> float:
    """The mean wall time of runs that begin together, with one wait at the end."""
    began = time.perf_counter()
    for _ in range(repeats):
        run()
    wait()
    return (time.perf_counter() - began) * 1e3 / repeats
