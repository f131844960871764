"""The table of searchers by engine and strategy; a library is imported only when its engine is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from autotune.core.text import hint
from autotune.errors import InputError
from autotune.searchers.base import Searcher, SourceResults
from autotune.searchers.exhaustive import ExhaustiveSearch
from autotune.searchers.random_search import RandomSearch


def _surrogate(priors: Sequence[SourceResults], stop_when_unlikely: bool) -> Searcher:
    from autotune.searchers.surrogate import SurrogateSearch

    return SurrogateSearch(priors, stop_when_unlikely=stop_when_unlikely)


def _adopt(priors: Sequence[SourceResults]) -> Searcher:
    from autotune.searchers.few_shot import AdoptionSearch

    return AdoptionSearch(priors)


def _kernel_tuner(strategy: str) -> Searcher:
    from autotune.searchers.kernel_tuner_search import KernelTunerSearch

    return KernelTunerSearch(strategy)


def _optuna(strategy: str) -> Searcher:
    from autotune.searchers.optuna_search import OptunaSearch

    return OptunaSearch(strategy)


@dataclass(frozen=True)
class _Engine:
    """How a searcher is made of a strategy, of priors and of whether to stop early.

    The first strategy is the default.

    `packages`: what a strategy needs beyond the plain dependencies, as module and distribution name.
    """

    make: Callable[[str, Sequence[SourceResults], bool], Searcher]
    strategies: tuple[str, ...] = ()
    packages: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    learns: bool = False  # from priors
    has_model: bool = False  # of the space: knows when to stop


_ENGINES = {
    "surrogate": _Engine(lambda _, priors, stop: _surrogate(priors, stop), learns=True, has_model=True),
    "exhaustive": _Engine(lambda *_: ExhaustiveSearch()),
    "random": _Engine(lambda *_: RandomSearch()),
    "kernel_tuner": _Engine(
        lambda strategy, *_: _kernel_tuner(strategy),
        strategies=(
            *("hybrid_vndx", "adaptive_tabu_greywolf", "basinhopping", "bayes_opt", "brute_force"),
            *("diff_evo", "dual_annealing", "firefly_algorithm", "genetic_algorithm", "greedy_ils"),
            *("greedy_mls", "minimize", "mls", "nsga2", "nsga3", "ordered_greedy_mls", "pso"),
            *("pyatf_strategies", "random_sample", "simulated_annealing", "skopt"),
        ),
        packages={"skopt": ("skopt", "scikit-optimize"), "pyatf_strategies": ("pyatf", "pyatf")},
    ),
    "optuna": _Engine(
        lambda strategy, *_: _optuna(strategy),
        strategies=("tpe", "cmaes", "gp", "nsgaii", "nsgaii_pareto", "qmc", "random"),
        packages={"cmaes": ("cmaes", "cmaes"), "gp": ("torch", "torch")},
    ),
    "adopt": _Engine(lambda _, priors, __: _adopt(priors), learns=True),
}


def make_searcher(
    engine: str,
    strategy: str | None = None,
    *,
    priors: Sequence[SourceResults] = (),
    stop_when_unlikely: bool = False,
) -> Searcher:
    """A searcher; without a strategy, the engine's default one. Priors are for those that learn from them.

    Raises InputError for an unknown engine or strategy, for a strategy whose package is not installed, and
    for an engine that cannot tell when a better configuration is unlikely.
    """
    if engine not in _ENGINES:
        raise InputError(f"unknown engine {engine!r}{hint(engine, engine_names())}")
    names = strategy_names(engine)
    if strategy is not None and not names:
        raise InputError(f"engine {engine} has no strategies; leave strategy {strategy!r} out")
    if strategy is not None and strategy not in names:
        raise InputError(f"engine {engine}: unknown strategy {strategy!r}{hint(strategy, names)}")
    chosen = strategy or default_strategy(engine)
    module, package = _ENGINES[engine].packages.get(chosen, ("", ""))
    if module and find_spec(module) is None:
        missing = f"needs {package}, which is not installed: pip install {package}"
        raise InputError(f"engine {engine}: strategy {chosen} {missing}")
    if stop_when_unlikely and not _ENGINES[engine].has_model:
        able = ", ".join(name for name, other in _ENGINES.items() if other.has_model)
        raise InputError(f"engine {engine} cannot tell when to stop: --stop-when-unlikely needs {able}")
    return _ENGINES[engine].make(chosen, priors, stop_when_unlikely)


def learns_from_sources(engine: str) -> bool:
    """Whether searchers of this engine make use of what other devices know; an unknown one does not."""
    return engine in _ENGINES and _ENGINES[engine].learns


def engine_names() -> tuple[str, ...]:
    """The engines."""
    return tuple(_ENGINES)


def strategy_names(engine: str) -> tuple[str, ...]:
    """The strategies of an engine in alphabetical order; none for an engine that has no choice."""
    return tuple(sorted(_ENGINES[engine].strategies))


def default_strategy(engine: str) -> str:
    """The strategy that an engine uses when none is named; empty where there is no choice."""
    return next(iter(_ENGINES[engine].strategies), "")
