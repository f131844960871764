"""Times baselines, the functions of a reference file that a kernel is compared with, in a separate process.

A function `baseline_NAME(inputs, sizes)` prepares a run, for example by bringing the inputs to a GPU, and
returns two functions: one that begins a run, and one that waits until all runs have ended. On the host,
`baseline_numpy` runs on one thread, and `baseline_numpy_all_cores` on as many as its libraries have. For
what a C function takes there, see `c_baselines`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits

from autotune.core.records import Value
from autotune.errors import BrokenReference
from autotune.problem.c_baselines import c_times
from autotune.problem.inputs import draw_inputs
from autotune.problem.problem_instance import ProblemInstance
from autotune.problem.reference import BASELINE, call, functions_of, run_reference

Run = Callable[[], object]

NUMPY, ALL_CORES = "numpy", "numpy_all_cores"
_ONE_THREAD, _QUEUED = "one thread", "runs one after the other, caches warm"
_ROUND_MS = 5.0  # runs are repeated until they take this long
_MAX_REPEATS = 200
_ROUNDS = 3
_LONG_MS = 500.0  # a longer run is not repeated


@dataclass(frozen=True)
class BaselineTime:
    """The time of one run of a baseline in ms; None if it failed.

    `detail` says how it ran, or why it failed.
    """

    name: str
    time_ms: float | None
    detail: str
    on_host: bool


class Baselines:
    """The baselines of a reference file, with the inputs of one problem.

    C functions may use the given macros.
    """

    def __init__(self, reference: Path, problem: ProblemInstance, macros: Mapping[str, Value]) -> None:
        self._path, self._problem, self._macros = reference, problem, macros
        self._sizes = dict(problem.definition.sizes)
        self._inputs = draw_inputs(problem.definition, problem.arrays)

    def times(self) -> tuple[BaselineTime, ...]:
        """The time of every baseline; if none is in C or uses numpy, the reference is timed instead."""
        found = functions_of(self._path)
        named = {name.removeprefix(BASELINE): one for name, one in found.items() if name.startswith(BASELINE)}
        timed = (*self._in_c(), *(self._time(name, one) for name, one in named.items()))
        if any(one.on_host for one in timed):
            return timed
        run = partial(found["reference"], self._inputs, self._sizes)
        with threadpool_limits(1):
            reference = BaselineTime(f"{NUMPY} (reference)", _time_ms(run), _ONE_THREAD, on_host=True)
        return (reference, *timed)

    def _in_c(self) -> Iterator[BaselineTime]:
        expected = partial(
            run_reference, self._path, self._inputs, self._problem.definition, self._problem.arrays
        )
        builds = c_times(self._path, self._problem, self._inputs, self._macros, expected, _time_ms)
        for build, found in builds:
            time_ms, detail = (None, found) if isinstance(found, str) else (found, build.detail)
            yield BaselineTime(build.name, time_ms, detail, on_host=True)

    def _time(self, name: str, prepare: Callable[..., tuple[Run, Run]]) -> BaselineTime:
        what, on_host = f"{prepare.__name__}(inputs, sizes)", name.startswith(NUMPY)
        detail = "all threads of its libraries" if name == ALL_CORES else _ONE_THREAD
        try:
            with threadpool_limits(1) if name == NUMPY else nullcontext():
                run, wait = call(self._path, prepare, what, self._inputs, self._sizes)
                time_ms = call(self._path, _time_ms, what, run, wait)
                return BaselineTime(name, time_ms, detail if on_host else _QUEUED, on_host)
        except BrokenReference as error:
            return BaselineTime(name, None, str(error).partition("\n")[0].rpartition(" raised ")[2], on_host)


def _time_ms(run: Run, wait: Run = lambda: None) -> float:
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
