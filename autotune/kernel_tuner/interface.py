"""`tune_kernel` and `run_kernel` with the signatures and the returned values of Kernel Tuner 1.5."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import kernel_tuner
from kernel_tuner import util

from autotune.api.progress import shown_progress
from autotune.api.space import with_default
from autotune.cli.output import emit
from autotune.cli.progress import Verbosity
from autotune.cli.search_summary import failures
from autotune.core.json_values import is_name
from autotune.core.runs_folder import RUNS
from autotune.core.text import count_text
from autotune.core.trials import Measurement, Objective, Status, Trial
from autotune.errors import InputError, SetupError
from autotune.evaluation.device_process import arrays_after_run, read_and_remove
from autotune.evaluation.journal import Journal, read_journal
from autotune.kernel_tuner.call import KernelCall
from autotune.kernel_tuner.goal import TIMEOUT_S, Goal, read_goal, search_options
from autotune.kernel_tuner.parameters import RESULT_NAMES
from autotune.kernel_tuner.request import TuningRequest, read_request
from autotune.processes.scratch_folder import scratch_folder
from autotune.tuning.context import open_run
from autotune.tuning.observer import Observer, Relay
from autotune.tuning.options import Options
from autotune.tuning.result import SearchResult
from autotune.tuning.shared_processes import open_processes
from autotune.tuning.task import TuningTask
from autotune.tuning.tuner import search

MAX_DEFAULTS = 8  # configurations that are tried as the one to compare with, until one works
_UNSUPPORTED = {  # arguments, with what to do instead
    "platform": "leave it out; `autotune devices` numbers the devices of all platforms for device=",
    "texmem_args": "pass the array as an argument and read it with __ldg",
    "objectives": "give one objective=",
}

_Given = dict[str, Any]  # all arguments by name
_T = TypeVar("_T")
_BY_STATUS = {
    Status.INVALID: util.InvalidConfig,
    Status.MISSES_REQUIREMENT: util.InvalidConfig,
    Status.COMPILE_ERROR: util.CompilationFailedConfig,
    Status.COMPILE_TIMEOUT: util.CompilationFailedConfig,
}


def _signed_as(theirs: Callable[..., Any]) -> Callable[[Callable[[_Given], _T]], Callable[..., _T]]:
    """Give a function that takes all arguments by name the signature of one of Kernel Tuner."""
    signature = inspect.signature(theirs)

    def signed(function: Callable[[_Given], _T]) -> Callable[..., _T]:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> _T:
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            return function(dict(given.arguments))

        called.__signature__ = signature  # type: ignore[attr-defined]
        return called

    return signed


@_signed_as(kernel_tuner.tune_kernel)
def tune_kernel(given: _Given) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Tune a kernel as Kernel Tuner's function of this name does, and keep the best in the cache.

    Arguments are as Kernel Tuner 1.5 documents them. How often a configuration is run, and in which
    processes, is decided here: `iterations`, `parallel`, `compiler` and `log` have no effect.

    Returns:
        A dictionary for each configuration, with its parameters, `time` in ms, `times` and the metrics, or
        `__error__`; and a dictionary about the device, with `best_config`.

    Raises:
        InputError: Something is wrong or not supported; nothing has been run.
        SetupError: No configuration works.
    """
    if given["simulation_mode"]:  # Kernel Tuner replays its own cache file: nothing is run
        if not given["cache"]:
            raise InputError("simulation_mode: needs cache=, a file that Kernel Tuner has written")
        return kernel_tuner.tune_kernel(**given)  # type: ignore[no-any-return]
    began = time.perf_counter()
    _refuse(given)
    goal = read_goal(given["objective"], given["objective_higher_is_better"], given["metrics"])
    request = read_request(KernelCall.of(given))
    task = request.space.bind(request.device)
    options = search_options(given["strategy"], given["strategy_options"], given["seed"], len(task.space))
    if not goal.is_time:
        own = goal.objective(request.parameters, request.observers)
        options = replace(options, objective=Objective.OWN, own_objective=own)
    if request.observers.readings and "NVIDIA" not in task.device.vendor:
        raise InputError(f"observers: NVMLObserver: {task.device.name} is no GPU of NVIDIA")
    options = replace(
        options,
        journal=_journal(request, given["cache"]),
        fresh=bool(request.observers.outputs),
        energy=request.observers.measures_energy,
    )
    verbosity = Verbosity.VERBOSE if given["verbose"] else Verbosity.NORMAL
    with nullcontext(Observer()) if given["quiet"] else shown_progress(verbosity=verbosity) as progress:
        result = _search(task, options, progress)
    if goal.is_time:
        finals = read_journal(result.journal).last_round.measurements
        best = _result_row(_timed_again(result.winner, result.final), request, goal)
        rows = [
            best
            if trial.config == result.winner.config
            else _result_row(_timed_again(trial, finals.get(trial.key)), request, goal)
            for trial in result.trials
        ]
    else:
        rows = [_result_row(trial, request, goal) for trial in result.trials]
        best = goal.best([row for row in rows if "__error__" not in row])
    env = _environment(result, rows, best, time.perf_counter() - began)
    if not given["quiet"]:
        emit(f"\nBEST PERFORMING CONFIGURATION FOR OBJECTIVE {goal.name}:")
        emit(util.get_config_string(best, [*given["tune_params"], goal.name, *goal.metrics]))
        emit("\n".join(_last_lines(result, rows, best, goal)))
    return rows, env


@_signed_as(kernel_tuner.run_kernel)
def run_kernel(given: _Given) -> list[Any]:
    """Run one configuration once, in a process of its own, and return the arguments as it leaves them.

    Arguments are as Kernel Tuner 1.5 documents them. `params` may be a row of results, without its times.

    Raises:
        InputError: Something is wrong or not supported; nothing has been run.
        SetupError: The kernel does not compile, or does not run.
    """
    _refuse(given)
    kernel, params = given["kernel_name"], given["params"]
    chosen = {name: value for name, value in params.items() if name not in RESULT_NAMES and is_name(name)}
    tune_params = {name: [value] for name, value in (chosen or {"kernel_tuner_run": 1}).items()}
    request = read_request(KernelCall.of(given | {"tune_params": tune_params}))
    request.space.spec = replace(request.space.spec, device={})  # nothing is timed
    task = request.space.bind(request.device)
    with scratch_folder() as folder:
        options = Options(journal=Path(folder) / "run.jsonl", compilers=1, timeout_s=TIMEOUT_S)
        with open_run(task, options, Observer()) as context:
            left = context.run_default(arrays_after_run, kernel, options.timeout_s)
            arrays = {name: read_and_remove(path) for name, path in left.items()}
            return request.arguments.outputs(arrays, dict(params))


def _refuse(given: _Given) -> None:
    """Raise InputError for arguments that are not supported, with what to do instead."""
    for name, instead in _UNSUPPORTED.items():
        if given.get(name):
            raise InputError(f"{name} is not supported: {instead}")
    if others := [name for name in given["smem_args"] or () if name != "size"]:
        raise InputError(f"smem_args: {others[0]!r} is not supported: only size is known")


def _journal(request: TuningRequest, cache: str | Path | None) -> Path:
    """The trials of one request go to one file, so that the same call resumes."""
    if cache is None:
        return RUNS / "kernel_tuner" / f"{request.call.kernel_name}.{request.digest}.jsonl"
    path = Path(cache)
    return path.with_name(f"{path.name.removesuffix('.json')}.{request.digest}.jsonl")


class _Tries(Relay):
    """Passes on the events of several tries of one search, and what they have in common once."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self._is_started = False
        self._warnings: set[str] = set()

    def started(self, task: TuningTask, total: int | None, journal: Journal, note: str = "") -> None:
        """Tell of the first try only: the others write to its journal."""
        if not self._is_started:
            self._is_started = True
            super().started(task, total, journal, note)

    def warn(self, text: str) -> None:
        """Tell each warning once."""
        if text not in self._warnings:
            self._warnings.add(text)
            super().warn(text)


def _search(task: TuningTask, options: Options, progress: Observer) -> SearchResult:
    """Search from the first configuration that works; raises SetupError when several in a row do not."""
    rows = len(task.space)
    observer = _Tries(progress)
    tried = sorted({place * (rows - 1) // (MAX_DEFAULTS - 1) for place in range(MAX_DEFAULTS)})
    with open_processes(task, options, observer) as processes:
        for row in tried[:-1]:
            with suppress(SetupError):
                return search(with_default(task, row), options, observer, processes=processes)
        return search(with_default(task, tried[-1]), options, observer, processes=processes)


def _result_row(trial: Trial, request: TuningRequest, goal: Goal) -> dict[str, Any]:
    """A configuration with its time and metrics, or `__error__`; times in ms."""
    row: dict[str, Any] = request.parameters.decode(trial.config)
    timings = {
        "compile_time": trial.compile_ms,
        "verification_time": 0.0,
        "benchmark_time": max(0.0, trial.cost_s * 1e3),
        "strategy_time": 0.0,
        "framework_time": 0.0,
    }
    if trial.status is Status.OK and trial.measurement is not None:
        row |= {"time": float(trial.measurement.median_ms), "times": list(trial.measurement.samples_ms)}
        row = goal.with_metrics(row | timings | request.observers.of(trial))
    else:
        row |= {"__error__": _BY_STATUS.get(trial.status, util.RuntimeFailedConfig)(trial.detail)} | timings
    return row | {"timestamp": datetime.now(UTC).isoformat(sep=" ")}


def _environment(
    result: SearchResult, rows: Sequence[dict[str, Any]], best: dict[str, Any], took_s: float
) -> dict[str, Any]:
    """The device, the best configuration, and how long everything took."""
    device = result.task.device
    env = {
        "device_name": device.name,
        "device_properties": device.runtime,
        "driver": device.driver,
        "compiler": result.task.compiler,
        "best_config": best,
    }
    totals: dict[str, Any] = util.get_total_timings(rows, env, took_s * 1e3)
    return totals


def _timed_again(trial: Trial, final: Measurement | None) -> Trial:
    """A trial with its times of the last round, as the cache has them; the rest is that of the search."""
    if final is None or trial.status is not Status.OK:
        return trial
    measured = trial.measurement or final
    return replace(trial, measurement=replace(measured, samples_ms=final.samples_ms))


def _last_lines(
    result: SearchResult, rows: Sequence[dict[str, Any]], best: dict[str, Any], goal: Goal
) -> list[str]:
    """Why rows have no time or a smaller one than the best, where the best is kept, and what to do next."""
    times_ms = [row["time"] for row in rows if "__error__" not in row]
    lines = []
    if goal.is_time and min(times_ms) < best["time"]:
        smaller = sum(time_ms < best["time"] for time_ms in times_ms)
        lines.append(
            f"warning an unsteady machine: `results` has {count_text(smaller, 'row')} with a smaller time, "
            'but env["best_config"] won the last round'
        )
    if any("__error__" in row for row in rows):
        lines += [*failures(result), "        their rows have `__error__` and no `time`"]
    return [*lines, f"kept    {result.cache_file}", f"next    autotune report {result.journal}"]
