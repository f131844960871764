"""`tune`, `tune_sweep` and `tune_all`: what `autotune search` does, as functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.api.progress import CallbackProgress, NotebookProgress, OnTrial, is_notebook
from autotune.api.result import Result
from autotune.api.space import Space
from autotune.core.text import hint
from autotune.core.trials import Budget
from autotune.errors import InputError
from autotune.evaluation.scoring import OwnObjective
from autotune.searchers import engine_names, strategy_names
from autotune.tuning.options import DEFAULT_BUDGET, MAX_VARIANTS, Options, read_objective
from autotune.tuning.plan import carry_out
from autotune.tuning.several_spaces import plan_of_spaces
from autotune.tuning.sweep import Sweep, bind_sweep, sweep
from autotune.tuning.task import Target
from autotune.tuning.tuner import search

if TYPE_CHECKING:
    from autotune.cluster.connection import Cluster


def tune(
    space: Space | str | Path,
    *,
    device: str | None = None,
    devices: str | None = None,
    cluster: str | None = None,
    budget: int | Budget = DEFAULT_BUDGET,
    strategy: str | None = None,
    seed: int = 0,
    objective: OwnObjective | None = None,
    callback: OnTrial | None = None,
    sizes: Mapping[str, int] | None = None,
    dtype: str | None = None,
    data: str | None = None,
    cache: str | Path | None = None,
    journal: str | Path | None = None,
    fresh: bool = False,
    keep: bool = False,
) -> Result:
    """Search a space, verify and time, keep the best in the cache: what `autotune search` does.

    The same space, device, budget, strategy and seed try the same configurations as the command line.
    Ctrl-C interrupts; the same call resumes. Several threads may tune several spaces; the times of those
    that share a device disturb each other.

    Args:
        space: A space, or the path of its file.
        device: As `--device`: `opencl:0`, a backend, a name; None takes the first GPU, else the CPU.
        devices: Several devices of this machine to search with, as `--devices`.
        cluster: A cluster to search with, as `--cluster`.
        budget: Configurations to try, or a `Budget` with a limit in seconds.
        strategy: An engine, a strategy of Kernel Tuner or a sampler of Optuna; None: as the command line.
        seed: Seed of the search.
        objective: What to make small: time, energy, edp, pareto, an expression, or a function of a dictionary
            of parameters, sizes, measurements and metrics; None takes that of the space, else the time.
        callback: Is called with every trial.
        sizes: Problem sizes that replace those of the space.
        dtype: Element type; None takes the first that is declared.
        data: Name of the inputs' content; None takes the first.
        cache: Folder of the cache, as `--cache`.
        journal: File of the trials, as `--journal`.
        fresh: Forget the trials that the journal has.
        keep: After an edit, go on with the journal's trials that still hold, as `--keep`.

    Raises:
        InputError: Something that was given is wrong, or another search writes the same journal.
        SetupError: The default configuration fails.
    """
    _require("space", space, isinstance(space, Space | str | Path), "a Space, or the path of a space file")
    _require("device", device, isinstance(device, str | None), 'a text such as "opencl:0" or "cuda:0"')
    is_objective = isinstance(objective, str | None) or callable(objective)
    _require("objective", objective, is_objective, "a text or a function")
    _require("callback", callback, callback is None or callable(callback), "a function of a trial")
    _require("sizes", sizes, isinstance(sizes, Mapping | None), 'a dictionary such as {"n": 1000}')
    known = space if isinstance(space, Space) else Space.load(space)
    named_objective, own = read_objective(objective)
    options = replace(
        _options(budget, strategy, seed, cache, fresh=fresh),
        objective=named_objective,
        own=own,
        journal=None if journal is None else Path(journal),
        keep=keep,
    )
    with _progress(callback) as progress, _several(devices, cluster, device, progress) as opened:
        found = None if opened is None else (opened.address, opened.info)
        task = known.bind(device, sizes, dtype, data, found)
        return Result(search(task, options, progress, cluster=opened))


def tune_sweep(
    space: str | Path,
    sizes: Mapping[str, Iterable[int]],
    *,
    device: str | None = None,
    dtypes: Sequence[str] = (),
    variants: int = MAX_VARIANTS,
    budget: int | Budget = DEFAULT_BUDGET,
    strategy: str | None = None,
    seed: int = 0,
    callback: OnTrial | None = None,
    cache: str | Path | None = None,
    fresh: bool = False,
) -> Sweep:
    """Tune a range of sizes, and choose a few variants that serve all between: `autotune search --sweep`.

    `sizes` has all values of each size, one for a size that does not vary; `dtypes` element types, of which
    none takes the first that is declared; `variants` is the most of an element type. The budget is that of
    the first size, and each other one gets a part. All other arguments are those of `tune`.

    Returns:
        A result for each size, and a table of variants for each element type.

    Raises:
        InputError: Something that was given is wrong; nothing was written.
        SetupError: The default configuration fails.
    """
    ranges = {name: list(values) for name, values in sizes.items()}
    options = _options(budget, strategy, seed, cache, fresh=fresh)
    with _progress(callback) as progress:
        tasks = bind_sweep(Target(Path(space), device), ranges, dtypes, progress)
        return sweep(tasks, options, progress, variants)


def tune_all(
    spaces: Sequence[str | Path],
    *,
    device: str | None = None,
    devices: str | None = None,
    cluster: str | None = None,
    budget: int | Budget = DEFAULT_BUDGET,
    strategy: str | None = None,
    seed: int = 0,
    callback: OnTrial | None = None,
    cache: str | Path | None = None,
    fresh: bool = False,
) -> list[Result]:
    """Search several spaces in turns, always the one with the most to gain: `autotune search A.yaml B.yaml`.

    Trials of the budget count per space, seconds for all together. The arguments are those of `tune`.

    Raises:
        InputError: Something that was given is wrong; nothing was written.
        SetupError: Some spaces failed; the results of the others are stored.
    """
    options = _options(budget, strategy, seed, cache, fresh=fresh)
    targets = [Target(Path(space), device) for space in spaces]
    with _progress(callback) as progress, _several(devices, cluster, device, progress) as opened:
        plan = plan_of_spaces(targets, options, progress.stage, opened)
        found = carry_out(plan, progress, lambda result: None)
    found.require_all(f"of {len(spaces)} spaces failed")
    return [Result(one) for one in found.results]


def _progress(callback: OnTrial | None) -> CallbackProgress:
    return NotebookProgress(callback) if is_notebook() else CallbackProgress(callback)


@contextmanager
def _several(
    devices: str | None, cluster: str | None, device: str | None, progress: CallbackProgress
) -> Iterator[Cluster | None]:
    """The devices to search with, if there are several."""
    if devices is None and cluster is None:
        yield None
        return
    from autotune.cluster.connection import open_several  # needs the extra `cluster`

    with open_several(devices, cluster, device, progress.stage, progress.warn) as opened:
        yield opened


def _options(
    budget: int | Budget, strategy: str | None, seed: int, cache: str | Path | None, *, fresh: bool
) -> Options:
    """The options that all functions of this module have; raises InputError for wrong ones."""
    is_budget = isinstance(budget, Budget) or _is_whole(budget, 1)
    _require("budget", budget, is_budget, "a whole number of at least 1")
    _require("seed", seed, _is_whole(seed, 0), "a whole number of at least 0")
    engine, named = engine_of(strategy)
    return Options(
        engine=engine,
        strategy=named,
        budget=budget if isinstance(budget, Budget) else Budget(trials=int(budget)),
        seed=int(seed),
        cache=None if cache is None else Path(cache),
        fresh=fresh,
    )


def _require(name: str, value: object, fits: bool, expected: str) -> None:
    """Raise InputError for an argument that is not what is expected."""
    if not fits:
        raise InputError(f"tune: {name}={value!r}: expected {expected}")


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def engine_of(strategy: str | None) -> tuple[str | None, str | None]:
    """The engine that a strategy belongs to, and its name there; raises InputError for an unknown one."""
    if strategy is None or strategy in engine_names():
        return strategy, None
    for engine in engine_names():
        if strategy in strategy_names(engine):
            return engine, strategy
    known = {*engine_names(), *(name for engine in engine_names() for name in strategy_names(engine))}
    raise InputError(f"unknown strategy {strategy!r}{hint(strategy, known)}")
