"""`tune_kernel` and `run_kernel` with the signatures and the returned values of Kernel Tuner 1.5."""

from __future__ import annotations

import math
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernel_tuner import util

from autotune.api.progress import CallbackProgress, NotebookProgress, is_notebook
from autotune.api.space import with_default
from autotune.core.expressions import number, parse
from autotune.core.records import Config
from autotune.core.text import hint
from autotune.core.trials import Budget, Failure, Objective, Status, Trial
from autotune.errors import InputError, SetupError
from autotune.evaluation.device_process import arrays_after_run, read_and_remove
from autotune.kernel_tuner.request import KernelCall, Request, read_request
from autotune.searchers import strategy_names
from autotune.tuning.context import open_context
from autotune.tuning.observer import Observer, Unobserved
from autotune.tuning.options import Options
from autotune.tuning.result import Result
from autotune.tuning.shared_processes import open_processes
from autotune.tuning.task import TuningTask
from autotune.tuning.tuner import search

ENGINE = "kernel_tuner"
MAX_DEFAULTS = 8  # configurations that are tried as the one to compare with, until one works
DEFAULT_FEVALS = 100  # of a strategy; without one the whole space is tried
TIMEOUT_S = 300.0  # of a configuration until the first one has run: scripts have problems of any size
LAST_ROUND_SHARE = 0.2  # of the time of the search: Kernel Tuner has no such round
RUNS = Path("runs/kernel_tuner")
_STRATEGIES = "kernel_tuner.strategies."  # a script may give the module in the place of its name
_BY_STATUS = {
    Status.PRUNED: util.InvalidConfig,
    Status.COMPILE_ERROR: util.CompilationFailedConfig,
    Status.COMPILE_TIMEOUT: util.CompilationFailedConfig,
}


def tune_kernel(
    kernel_name: str,
    kernel_source: Any,
    problem_size: Any,
    arguments: Sequence[Any],
    tune_params: Mapping[str, Sequence[Any]],
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    restrictions: Any = None,
    answer: Sequence[Any] | None = None,
    atol: float = 1e-6,
    verify: Callable[..., Any] | None = None,
    verbose: bool = False,
    lang: str | None = None,
    device: int = 0,
    platform: int = 0,
    smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    texmem_args: Mapping[str, Any] | None = None,
    compiler: str | None = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Any] | None = None,
    log: Any = None,
    iterations: int = 7,
    block_size_names: Sequence[str] | None = None,
    quiet: bool = False,
    strategy: Any = None,
    strategy_options: Mapping[str, Any] | None = None,
    cache: str | Path | None = None,
    metrics: Mapping[str, Any] | None = None,
    simulation_mode: bool | None = None,
    parallel: Any = None,
    observers: Sequence[Any] | None = None,
    objective: Any = None,
    objective_higher_is_better: Any = None,
    objectives: Mapping[str, bool] | None = None,
    seed: int | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
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
    if simulation_mode:
        return _simulated(locals())
    began = time.perf_counter()
    _refuse(platform, texmem_args, objectives, smem_args)
    names, is_higher_better = util.get_objective_defaults(objective, objective_higher_is_better)
    if not isinstance(names, str):
        raise InputError("objective: several at once are not supported; name one, or use metrics")
    options = _options(strategy, strategy_options, seed)
    call = KernelCall(
        *(kernel_name, kernel_source, problem_size, arguments, tune_params),
        grid_div=(grid_div_x, grid_div_y, grid_div_z),
        restrictions=restrictions,
        answer=answer,
        atol=atol,
        verify=verify,
        lang=lang,
        device=device,
        smem_args=smem_args,
        cmem_args=cmem_args,
        compiler_options=compiler_options,
        defines=defines,
        block_size_names=block_size_names,
        observers=observers,
    )
    request = read_request(call)
    if names != "time":
        own = _objective(names, bool(is_higher_better), metrics, request)
        options = replace(options, objective=Objective.OWN, own=own)
    task = request.space.bind(request.device)
    if request.observers.readings and "NVIDIA" not in task.device.vendor:
        raise InputError(f"observers: NVMLObserver: {task.device.name} is no GPU of NVIDIA")
    journal = _journal(kernel_name, request, cache)
    with _progress(quiet) as progress:
        watched = request.observers
        options = replace(
            options, journal=journal, fresh=bool(watched.outputs), energy=watched.measures_energy
        )
        found = _search(task, options, progress)
    results = [_row(trial, request, metrics) for trial in found.trials]
    env = _environment(found, results, names, is_higher_better, time.perf_counter() - began)
    if not quiet:
        _print_best(env["best_config"], names, [*tune_params, names, *(metrics or ())])
        if verbose:
            print(f"journal {found.journal}; best kept in {found.cache_file}")  # noqa: T201
    return results, env


def run_kernel(
    kernel_name: str,
    kernel_source: Any,
    problem_size: Any,
    arguments: Sequence[Any],
    params: Mapping[str, Any],
    grid_div_x: Any = None,
    grid_div_y: Any = None,
    grid_div_z: Any = None,
    lang: str | None = None,
    device: int = 0,
    platform: int = 0,
    smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    texmem_args: Mapping[str, Any] | None = None,
    compiler: str | None = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, Any] | None = None,
    block_size_names: Sequence[str] | None = None,
    quiet: bool = False,
    log: Any = None,
) -> list[Any]:
    """Run one configuration once, in a process of its own, and return the arguments as it leaves them.

    Arguments are as Kernel Tuner 1.5 documents them.

    Raises:
        InputError: Something is wrong or not supported; nothing has been run.
        SetupError: The kernel does not compile, or does not run.
    """
    _refuse(platform, texmem_args, None, smem_args)
    call = KernelCall(
        *(kernel_name, kernel_source, problem_size, arguments),
        {name: [value] for name, value in (params or {"kernel_tuner_run": 1}).items()},
        grid_div=(grid_div_x, grid_div_y, grid_div_z),
        lang=lang,
        device=device,
        smem_args=smem_args,
        cmem_args=cmem_args,
        compiler_options=compiler_options,
        defines=defines,
        block_size_names=block_size_names,
    )
    request = read_request(call)
    request.space.spec = replace(request.space.spec, device={})  # nothing is timed
    task = request.space.bind(request.device)
    with tempfile.TemporaryDirectory() as folder, _progress(quiet=True) as progress:
        options = Options(journal=Path(folder) / "run.jsonl", workers=1, timeout_s=TIMEOUT_S)
        with open_context(task, options, progress) as context:
            instance = context.maker.make(task.spec.default)
            compiled = context.pool.compile(instance).result()
            if isinstance(compiled, Failure):
                raise SetupError(f"{kernel_name}: {compiled}")
            left = context.worker.run(
                arrays_after_run, compiled, instance.problem, timeout_s=options.timeout_s
            )
            if isinstance(left, Failure):
                raise SetupError(f"{kernel_name}: {left}")
            found = {name: read_and_remove(path) for name, path in left.items()}
            return request.arguments.outputs(found, dict(params))


def _print_best(best: Mapping[str, Any], objective: str, keys: Sequence[str]) -> None:
    """Print what Kernel Tuner prints at the end."""
    print(f"\nBEST PERFORMING CONFIGURATION FOR OBJECTIVE {objective}:")  # noqa: T201
    print(util.get_config_string(best, keys))  # noqa: T201


def _refuse(platform: int, texmem_args: Any, objectives: Any, smem_args: Any) -> None:
    """Raise InputError for what is not supported, with what to do instead."""
    wrong = {
        "platform": (
            platform,
            "leave it out; `autotune devices` numbers the devices of all platforms for device=",
        ),
        "texmem_args": (texmem_args, "pass the array as an argument and read it with __ldg"),
        "objectives": (objectives, "give one objective="),
        "smem_args": (set(smem_args or ()) - {"size"}, "only size is known"),
    }
    for name, (value, instead) in wrong.items():
        if value:
            raise InputError(f"tune_kernel: {name} is not supported: {instead}")


def _options(strategy: Any, strategy_options: Mapping[str, Any] | None, seed: int | None) -> Options:
    given = dict(strategy_options or {})
    fevals, seconds = given.pop("max_fevals", None), given.pop("time_limit", None)
    if given:
        warnings.warn(f"strategy_options {', '.join(given)} are ignored", stacklevel=3)
    module = getattr(strategy, "__name__", "")
    if module.startswith(_STRATEGIES):
        strategy = module.removeprefix(_STRATEGIES)
    is_whole = strategy in (None, "brute_force")
    if not is_whole and strategy not in strategy_names(ENGINE):
        named = strategy if isinstance(strategy, str) else type(strategy).__name__
        raise InputError(f"strategy: {named!r} is unknown{hint(named, strategy_names(ENGINE))}")
    limit = fevals if is_whole or fevals is not None or seconds is not None else DEFAULT_FEVALS
    return Options(
        engine="exhaustive" if is_whole else ENGINE,
        strategy=None if is_whole else strategy,
        budget=Budget(limit, seconds),
        seed=seed or 0,
        timeout_s=TIMEOUT_S,
        transfer=False,
        last_round_share=LAST_ROUND_SHARE,
        sanitizer=False,  # a script's only problem is its full one, which takes long on the CPU
        objective=Objective.TIME,
    )


def _journal(kernel: str, request: Request, cache: str | Path | None) -> Path:
    """The trials of one request go to one file, so that the same call resumes."""
    if cache is None:
        return RUNS / f"{kernel}.{request.digest}.jsonl"
    path = Path(cache)
    return path.with_name(f"{path.name.removesuffix('.json')}.{request.digest}.jsonl")


@contextmanager
def _progress(quiet: bool) -> Iterator[Observer]:
    if quiet:
        yield Unobserved()
        return
    with NotebookProgress(None) if is_notebook() else CallbackProgress(None) as progress:
        yield progress


def _search(task: TuningTask, options: Options, progress: Observer) -> Result:
    """Search from the first configuration that works; raises SetupError when several in a row do not."""
    rows = len(task.space)
    tried = sorted({place * (rows - 1) // (MAX_DEFAULTS - 1) for place in range(MAX_DEFAULTS)})
    with open_processes(task, options, progress) as processes:
        for row in tried[:-1]:
            with suppress(SetupError):
                return search(with_default(task, row), options, progress, processes=processes)
        return search(with_default(task, tried[-1]), options, progress, processes=processes)


def _objective(
    name: str, is_higher_better: bool, metrics: Mapping[str, Any] | None, request: Request
) -> Callable[[Mapping[str, Any]], float]:
    """A metric as what a search makes small and keeps above 0, whatever its sign."""

    def objective(values: Mapping[str, Any]) -> float:
        config = Config({one.name: values[one.name] for one in request.parameters.listed})
        row = request.parameters.decode(config) | {"time": values["time_ms"]}
        row |= {"nvml_energy": values.get("energy_j")} | request.observers.results.get(config.key, {})
        value = float(_with_metrics(row, metrics)[name]) * (-1 if is_higher_better else 1)
        return value + math.hypot(value, 1)

    objective.__qualname__ = name
    return objective


def _with_metrics(row: dict[str, Any], metrics: Mapping[str, Any] | None) -> dict[str, Any]:
    """A row with the metrics of a script, each of which may read those before it."""
    for name, metric in (metrics or {}).items():
        row[name] = metric(row) if callable(metric) else number(parse(metric), row)
    return row


def _row(trial: Trial, request: Request, metrics: Mapping[str, Any] | None) -> dict[str, Any]:
    """A configuration as Kernel Tuner reports it."""
    row: dict[str, Any] = request.parameters.decode(trial.config)
    timings = {"compile_time": trial.compile_ms, "verification_time": 0.0}
    timings |= {"benchmark_time": max(0.0, trial.cost_s * 1e3), "strategy_time": 0.0, "framework_time": 0.0}
    if trial.status is Status.OK and trial.measurement is not None:
        row |= {"time": float(trial.measurement.median_ms), "times": list(trial.measurement.samples_ms)}
        row = _with_metrics(row | timings | request.observers.of(trial), metrics)
    else:
        row |= {"__error__": _BY_STATUS.get(trial.status, util.RuntimeFailedConfig)(trial.detail)} | timings
    return row | {"timestamp": datetime.now(UTC).isoformat(sep=" ")}


def _environment(
    found: Result, results: list[dict[str, Any]], objective: str, is_higher_better: Any, seconds: float
) -> dict[str, Any]:
    device = found.task.device
    best = _best(found, results, objective, bool(is_higher_better))
    env = {
        "device_name": device.name,
        "device_properties": device.runtime,
        "driver": device.driver,
        "compiler": found.task.compiler,
        "best_config": best,
    }
    totals: dict[str, Any] = util.get_total_timings(results, env, seconds * 1e3)
    return totals


def _best(
    found: Result, results: list[dict[str, Any]], objective: str, is_higher_better: bool
) -> dict[str, Any]:
    """The winner of the last round; that of another objective is the best of the search."""
    known = [row for row in results if "__error__" not in row]
    if objective != "time":
        if objective not in known[0]:
            raise InputError(f"objective: {objective!r} is no metric{hint(objective, known[0])}")
        return (max if is_higher_better else min)(known, key=lambda row: float(row[objective]))
    configs: list[Config] = [trial.config for trial in found.trials]
    if found.winner.config not in configs:
        return min(known, key=lambda row: float(row["time"]))
    return results[configs.index(found.winner.config)]


def _simulated(given: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Replay a cache file of Kernel Tuner by its own means: nothing is run."""
    import kernel_tuner

    if not given["cache"]:
        raise InputError("simulation_mode: needs cache=, a file that Kernel Tuner has written")
    results: tuple[list[dict[str, Any]], dict[str, Any]] = kernel_tuner.tune_kernel(**given)
    return results
