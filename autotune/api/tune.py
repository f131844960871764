"""`tune`, `tune_sweep` and `tune_all`: what `autotune search` does, as functions."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from itertools import product
from numbers import Integral
from pathlib import Path
from typing import Any, TypedDict, Unpack

from autotune.api.progress import shown_progress
from autotune.api.result import Known, Result
from autotune.api.space import Space
from autotune.cli.options import alone_if_enough, call_mode, timeline_file
from autotune.cli.progress import SearchProgress
from autotune.core.text import hint
from autotune.core.trials import USUAL, Budget, CallMode
from autotune.errors import InputError
from autotune.evaluation.ledger import OnTrial
from autotune.evaluation.scoring import OwnObjective
from autotune.frameworks import FORMATS
from autotune.plans.open_plan import open_cluster, open_plan
from autotune.plans.search_plan import PlanResult, Searches, search_one
from autotune.plans.sweep import Sweep, bind_sweep, sweep
from autotune.searchers import engine_names, strategy_names
from autotune.tuning.options import MAX_VARIANTS, Options, read_objective, usual_budget
from autotune.tuning.task import Target


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
    keep: bool
    timeline: str | Path  # the file; spans are of all threads of the process


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
        **how: Further options of the command, as `How` lists them.

    Raises:
        InputError: Something that was given is wrong, or another search writes the same journal.
        MissingExtra: The library of the strategy is not installed.
        SetupError: The default configuration fails.
    """
    given = _Given(tune, how)
    given.require(
        "space", space, isinstance(space, Space | str | Path), "a Space, or the path of a space file"
    )
    given.require("device", device, isinstance(device, str | None), 'a text such as "opencl:0" or "cuda:0"')
    given.require("sizes", sizes, isinstance(sizes, Mapping | None), 'a dictionary such as {"n": 1000}')
    known = space if isinstance(space, Space) else Space.load(space)
    options = replace(
        given.options(budget, strategy, seed, objective, cache, fresh=fresh),
        journal=None if journal is None else Path(journal),
    )
    with given.progress(callback) as progress, open_cluster(cluster, device, progress) as opened:
        present = None if opened is None else [(opened.address, opened.info)]
        task = known.bind(device, sizes, dtype, data, present, given.measure, devices)
        task = alone_if_enough(task, devices, options.budget, progress.warn)
        done = search_one(task, options, opened, Searches(progress))
    (result,) = _results(done)
    return result


def tune_sweep(
    space: str | Path,
    sizes: Mapping[str, Iterable[int]] | Iterable[Mapping[str, int]],
    *,
    device: str | None = None,
    dtypes: Sequence[str] = (),
    data: str | None = None,
    variants: int = MAX_VARIANTS,
    form: str | None = None,
    budget: int | Budget | None = None,
    strategy: str | None = None,
    seed: int = 0,
    objective: OwnObjective | None = None,
    callback: OnTrial | None = None,
    cache: str | Path | None = None,
    fresh: bool = False,
    **how: Unpack[How],
) -> Sweep:
    """Tune a range of sizes, and choose a few variants that serve all between: `autotune search --sweep`.

    `sizes` has all values of each size, and all their combinations are tuned; or it lists the sizes of each
    problem. A size that does not vary has one value. `dtypes` lists element types; without any, the first
    that is declared is tuned. `variants` is the most of an element type. With `form`, such as `vllm-moe`, the
    sweep is for files that a framework reads, as `--format`. The budget is that of the first size, and each
    other one gets a part. All other arguments are those of `tune`.

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
    given.require("form", form, form is None or form in FORMATS, f"one of {', '.join(FORMATS)}")
    options = given.options(budget, strategy, seed, objective, cache, fresh=fresh)
    target = Target(Path(space), device, data=data, measure=given.measure)
    file = FORMATS[form] if form else None
    with given.progress(callback) as progress:
        tasks = bind_sweep(target, points, dtypes, progress, file)
        return sweep(tasks, options, progress, variants, file)


def tune_all(
    spaces: Sequence[str | Path] = (),
    *,
    wanted: bool = False,
    recorded: str | Path | None = None,
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
    objective: OwnObjective | None = None,
    callback: OnTrial | None = None,
    cache: str | Path | None = None,
    fresh: bool = False,
    **how: Unpack[How],
) -> list[Result]:
    """Search several spaces, the problems that programs requested, or one space on every model of a cluster.

    Next is always the space with the most to gain. `wanted` searches what programs requested and did not
    find, or only the requests for the kernel of a space; `recorded`, what a file of `autotune record` lists,
    with the spaces of its kernels. `each_model` searches one space on every GPU model of the cluster at once.
    The budget's trials are those of each search, its seconds those of all together. All other arguments are
    those of `tune`.

    Raises:
        InputError: Something that was given is wrong; nothing was written.
        SetupError: Some searches failed; the results of the others are stored.
    """
    given = _Given(tune_all, how)
    given.require("spaces", spaces, not isinstance(spaces, str | Path), "paths of space files")
    unused: dict[str, object] = {}
    if each_model:
        given.require("spaces", spaces, len(spaces) == 1, "one space with each_model=True")
        given.require("cluster", cluster, cluster is not None, "a cluster with each_model=True")
        unused, mode = {"wanted": wanted, "recorded": recorded}, "each_model=True"
    elif wanted or recorded:
        given.require("spaces", spaces, not wanted or len(spaces) < 2, "at most one space with wanted=True")
        unused = {"devices": devices, "cluster": cluster, "sizes": sizes, "dtype": dtype, "data": data}
        unused["recorded"] = wanted and recorded
        mode = f"{'wanted=True' if wanted else 'recorded'}: requests have one device and problem"
    else:
        given.require("spaces", spaces, len(spaces) > 0, "paths of space files")
    for name, value in unused.items():
        given.require(name, value, not value, f"None with {mode}")
    options = given.options(budget, strategy, seed, objective, cache, fresh=fresh)
    paths = [Path(space) for space in spaces]
    target = Target(Path(), device, dict(sizes or {}), dtype, data, given.measure, devices)
    file = None if recorded is None else Path(recorded)
    with (
        given.progress(callback) as progress,
        open_plan(
            target, paths, options, progress, cluster, each_model=each_model, wanted=wanted, recorded=file
        ) as plan,
    ):
        done = plan(Searches(progress))
    done.require_all()
    return _results(done)


def _results(done: PlanResult) -> list[Result]:
    """The results of a plan, or the known one in their place."""
    return [Known(done.known)] if done.known else [Result(result) for result in done.results]


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
            elif name in ("dump_wrong", "timeline"):
                self.require(name, value, isinstance(value, str | Path), "a path")
                value = Path(value)
            elif name != "measure":
                self.require(name, value, isinstance(value, bool), "True or False")
            if name != "measure":
                self._how[name] = value
        self._timeline: Path | None = self._how.pop("timeline", None)
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

    @contextmanager
    def progress(self, callback: OnTrial | None) -> Iterator[SearchProgress]:
        """The progress of the searches, which also calls back; their timeline is written at the end."""
        self.require("callback", callback, callback is None or callable(callback), "a function of a trial")
        with timeline_file(self._timeline, self._function), shown_progress(callback) as progress:
            yield progress

    def options(
        self,
        budget: int | Budget | None,
        strategy: str | None,
        seed: int,
        objective: OwnObjective | None,
        cache: str | Path | None,
        *,
        fresh: bool,
    ) -> Options:
        """The options that all functions have; raises InputError for wrong ones."""
        is_budget = isinstance(budget, Budget | None) or _is_whole(budget, 1)
        self.require("budget", budget, is_budget, "a whole number of at least 1")
        self.require("seed", seed, _is_whole(seed, 0), "a whole number of at least 0")
        is_objective = isinstance(objective, str | None) or callable(objective)
        self.require("objective", objective, is_objective, "a text or a function")
        engine, named = self._engine_of(strategy)
        budget = usual_budget(engine) if budget is None else budget
        named_objective, own = read_objective(objective)
        return Options(
            engine=engine,
            strategy=named,
            budget=budget if isinstance(budget, Budget) else Budget(trials=int(budget)),
            seed=int(seed),
            objective=named_objective,
            own_objective=own,
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


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least
