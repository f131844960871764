"""`tune`, `tune_sweep` and `tune_all`: what `autotune search` does, as functions."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from itertools import product
from numbers import Integral
from pathlib import Path
from typing import Any, TypedDict, Unpack

from autotune.api.progress import shown_progress
from autotune.api.result import Known, Result
from autotune.api.space import Space
from autotune.cli.options import alone_if_enough, call_mode, opened_cluster
from autotune.cli.progress import SearchProgress
from autotune.core.records import ADOPTION
from autotune.core.stages import Stage
from autotune.core.text import hint
from autotune.core.trials import USUAL, Budget, CallMode
from autotune.errors import InputError
from autotune.evaluation.ledger import OnTrial
from autotune.evaluation.scoring import OwnObjective
from autotune.plans.requests import plan_of_requests, requests_of_misses
from autotune.plans.search_plan import run_searches
from autotune.plans.several_spaces import plan_of_spaces
from autotune.plans.sweep import Sweep, bind_sweep, sweep
from autotune.searchers import engine_names, strategy_names
from autotune.tuning.options import MAX_VARIANTS, Options, read_objective, usual_budget
from autotune.tuning.served_best import KnownResult
from autotune.tuning.task import Target
from autotune.tuning.tuner import adopt, priors_of, search


class How(TypedDict, total=False):
    """How to search, for all functions; each is as the option of `autotune search` of that name."""

    measure: str
    transfer: bool  # False is `--no-transfer`
    stop_when_unlikely: bool
    sanitizer: bool  # False is `--no-sanitizer`
    binary_cache: bool  # False is `--no-binary-cache`
    timeout_s: float
    compile_timeout_s: float
    compilers: int
    dump_wrong: str | Path


def tune(
    space: Space | str | Path,
    *,
    device: str | None = None,
    devices: str | None = None,
    cluster: str | None = None,
    budget: int | Budget | None = None,
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
    **how: Unpack[How],
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
        budget: Configurations to try, or a `Budget` with a limit in seconds; None: as the command line.
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
        **how: Further options of the command, as `How` lists them.

    Raises:
        InputError: Something that was given is wrong, or another search writes the same journal.
        SetupError: The default configuration fails.
    """
    given = _Given(tune, how)
    given.require(
        "space", space, isinstance(space, Space | str | Path), "a Space, or the path of a space file"
    )
    given.require("device", device, isinstance(device, str | None), 'a text such as "opencl:0" or "cuda:0"')
    is_objective = isinstance(objective, str | None) or callable(objective)
    given.require("objective", objective, is_objective, "a text or a function")
    given.require("sizes", sizes, isinstance(sizes, Mapping | None), 'a dictionary such as {"n": 1000}')
    known = space if isinstance(space, Space) else Space.load(space)
    named_objective, own = read_objective(objective)
    options = replace(
        given.options(budget, strategy, seed, cache, fresh=fresh),
        objective=named_objective,
        own_objective=own,
        journal=None if journal is None else Path(journal),
        keep=keep,
    )
    with given.progress(callback) as progress, opened_cluster(cluster, device, progress) as opened:
        present = None if opened is None else [(opened.address, opened.info)]
        task = known.bind(device, sizes, dtype, data, present, given.measure, devices)
        task = alone_if_enough(task, devices, options.budget, progress.warn)
        if options.engine == ADOPTION and opened is None:
            adopted = adopt(task, options, progress)
            return Known(adopted) if isinstance(adopted, KnownResult) else Result(adopted)
        return Result(search(task, options, progress, priors_of(task, options), opened))


def tune_sweep(
    space: str | Path,
    sizes: Mapping[str, Iterable[int]] | Iterable[Mapping[str, int]],
    *,
    device: str | None = None,
    dtypes: Sequence[str] = (),
    data: str | None = None,
    variants: int = MAX_VARIANTS,
    budget: int | Budget | None = None,
    strategy: str | None = None,
    seed: int = 0,
    callback: OnTrial | None = None,
    cache: str | Path | None = None,
    fresh: bool = False,
    **how: Unpack[How],
) -> Sweep:
    """Tune a range of sizes, and choose a few variants that serve all between: `autotune search --sweep`.

    `sizes` has all values of each size, and all their combinations are tuned; or it lists the sizes of each
    problem. A size that does not vary has one value. `dtypes` lists element types; without any, the first
    that is declared is tuned. `variants` is the most of an element type. The budget is that of the first
    size, and each other one gets a part. All other arguments are those of `tune`.

    Returns:
        A result for each size, and a table of variants for each element type.

    Raises:
        InputError: Something that was given is wrong; nothing was written.
        SetupError: The default configuration fails.
    """
    given = _Given(tune_sweep, how)
    points = (
        [dict(zip(sizes, row, strict=True)) for row in product(*sizes.values())]
        if isinstance(sizes, Mapping)
        else [dict(row) for row in sizes]
    )
    options = given.options(budget, strategy, seed, cache, fresh=fresh)
    target = Target(Path(space), device, data=data, measure=given.measure)
    with given.progress(callback) as progress:
        return sweep(bind_sweep(target, points, dtypes, progress), options, progress, variants)


def tune_all(
    spaces: Sequence[str | Path] = (),
    *,
    wanted: bool = False,
    each_model: bool = False,
    device: str | None = None,
    devices: str | None = None,
    cluster: str | None = None,
    sizes: Mapping[str, int] | None = None,
    dtype: str | None = None,
    data: str | None = None,
    budget: int | Budget | None = None,
    strategy: str | None = None,
    seed: int = 0,
    callback: OnTrial | None = None,
    cache: str | Path | None = None,
    fresh: bool = False,
    **how: Unpack[How],
) -> list[Result]:
    """Search several spaces, the problems that programs requested, or one space on every model of a cluster.

    Next is always the space with the most to gain. `wanted` searches what programs requested and did not
    find, or only the requests for the kernel of a space. `each_model` searches one space on every GPU model
    of the cluster at once. The budget's trials are those of each search, its seconds those of all together.
    All other arguments are those of `tune`.

    Raises:
        InputError: Something that was given is wrong; nothing was written.
        SetupError: Some searches failed; the results of the others are stored.
    """
    given = _Given(tune_all, how)
    is_list = not isinstance(spaces, str | Path)
    if each_model:
        given.require("spaces", spaces, is_list and len(spaces) == 1, "one space with each_model=True")
        given.require("cluster", cluster, cluster is not None, "a cluster with each_model=True")
        given.require("wanted", wanted, not wanted, "False with each_model=True")
    elif wanted:
        given.require("spaces", spaces, is_list and len(spaces) < 2, "at most one space with wanted=True")
        others = {"devices": devices, "cluster": cluster, "sizes": sizes, "dtype": dtype, "data": data}
        for name, value in others.items():
            given.require(
                name, value, not value, "None with wanted=True: requests have one device and problem"
            )
    else:
        given.require("spaces", spaces, is_list and len(spaces) > 0, "paths of space files")
    options = given.options(budget, strategy, seed, cache, fresh=fresh)
    problem = (device, dict(sizes or {}), dtype, data, given.measure, devices)
    targets = [Target(Path(space), *problem) for space in spaces]
    with given.progress(callback) as progress:
        if wanted:
            progress.stage(Stage("finding devices"))
            requests = requests_of_misses(options.cache, device, targets[0].space if targets else None)
            plan_result = run_searches(plan_of_requests(requests, options, progress.stage), progress)
            failed = f"of {requests.total} requests failed and stay"
        elif each_model:
            from autotune.cluster.connection import open_each_model  # needs the extra
            from autotune.plans.each_model import search_each_model

            with open_each_model(str(cluster), device, progress.stage, progress.warn) as clusters:
                plan_result = search_each_model(targets[0], options, progress, clusters)
            failed = f"of {len(clusters)} models failed"
        else:
            with opened_cluster(cluster, device, progress) as opened:
                plan_result = run_searches(plan_of_spaces(targets, options, progress.stage, opened), progress)
            failed = f"of {len(spaces)} spaces failed"
    plan_result.require_all(failed)
    return [Result(result) for result in plan_result.results]


class _Given:
    """What a function was given; messages of what is wrong name the function."""

    def __init__(self, function: Callable[..., object], how: Mapping[str, Any]) -> None:
        """Take the function and its further options; raises InputError for an unknown one."""
        self._function = function.__name__
        for name in how:
            if name not in How.__annotations__:
                known = {*signature(function).parameters, *How.__annotations__} - {"how"}
                raise InputError(f"{self._function}: unknown argument {name!r}{hint(name, known)}")
        self._how: dict[str, Any] = {}  # as fields of the options
        for name, value in how.items():
            if name.endswith("_s"):
                is_positive = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
                self.require(name, value, is_positive, "a positive number of seconds")
            elif name == "compilers":
                self.require(name, value, _is_whole(value, 1), "a whole number of at least 1")
            elif name == "dump_wrong":
                self.require(name, value, isinstance(value, str | Path), "the path of a folder")
                value = Path(value)
            elif name != "measure":
                self.require(name, value, isinstance(value, bool), "True or False")
            if name != "measure":
                self._how[name] = value
        self.measure = self._call_mode(how.get("measure"))

    def _call_mode(self, text: str | None) -> CallMode:
        if text is None:
            return USUAL
        try:
            return call_mode(str(text))
        except ArgumentTypeError as error:
            raise InputError(f"{self._function}: measure={error}") from None

    def require(self, name: str, value: object, fits: bool, expected: str) -> None:
        """Raise InputError for an argument that is not what is expected."""
        if not fits:
            raise InputError(f"{self._function}: {name}={value!r}: expected {expected}")

    def progress(self, callback: OnTrial | None) -> SearchProgress:
        """The progress of the searches, which also calls back."""
        self.require("callback", callback, callback is None or callable(callback), "a function of a trial")
        return shown_progress(callback)

    def options(
        self,
        budget: int | Budget | None,
        strategy: str | None,
        seed: int,
        cache: str | Path | None,
        *,
        fresh: bool,
    ) -> Options:
        """The options that all functions have; raises InputError for wrong ones."""
        is_budget = isinstance(budget, Budget | None) or _is_whole(budget, 1)
        self.require("budget", budget, is_budget, "a whole number of at least 1")
        self.require("seed", seed, _is_whole(seed, 0), "a whole number of at least 0")
        engine, named = self._engine_of(strategy)
        return Options(
            engine=engine,
            strategy=named,
            budget=_budget(budget, engine),
            seed=int(seed),
            cache=None if cache is None else Path(cache),
            fresh=fresh,
            **self._how,
        )

    def _engine_of(self, strategy: str | None) -> tuple[str | None, str | None]:
        """The engine that a strategy belongs to, and its name there; raises InputError for an unknown one."""
        if strategy is None or strategy in engine_names():
            return strategy, None
        for engine in engine_names():
            if strategy in strategy_names(engine):
                return engine, strategy
        known = {*engine_names(), *(name for engine in engine_names() for name in strategy_names(engine))}
        raise InputError(f"{self._function}: unknown strategy {strategy!r}{hint(strategy, known)}")


def _budget(given: int | Budget | None, engine: str | None) -> Budget:
    if given is None:
        return usual_budget(engine)
    return given if isinstance(given, Budget) else Budget(trials=int(given))


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
