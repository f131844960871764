"""The table of searchers by engine and strategy; a library is imported only when its engine is chosen."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from autotune.errors import InputError
from autotune.searchers.base import Searcher
from autotune.searchers.exhaustive import ExhaustiveSearch
from autotune.searchers.random_search import RandomSearch


def _kernel_tuner(strategy: str) -> Searcher:
    from autotune.searchers.kernel_tuner_search import KernelTunerSearch

    return KernelTunerSearch(strategy)


def _optuna(strategy: str) -> Searcher:
    from autotune.searchers.optuna_search import OptunaSearch

    return OptunaSearch(strategy)


@dataclass(frozen=True)
class _Engine:
    """How a searcher is made of a strategy; the first strategy is the default.

    `packages`: what a strategy needs beyond the plain dependencies, as module and distribution name.
    """

    make: Callable[[str], Searcher]
    strategies: tuple[str, ...] = ()
    packages: Mapping[str, tuple[str, str]] = field(default_factory=dict)


_ENGINES = {
    "exhaustive": _Engine(lambda _: ExhaustiveSearch()),
    "random": _Engine(lambda _: RandomSearch()),
    "kernel_tuner": _Engine(
        _kernel_tuner,
        strategies=(
            *("hybrid_vndx", "adaptive_tabu_greywolf", "basinhopping", "bayes_opt", "brute_force"),
            *("diff_evo", "dual_annealing", "firefly_algorithm", "genetic_algorithm", "greedy_ils"),
            *("greedy_mls", "minimize", "mls", "nsga2", "nsga3", "ordered_greedy_mls", "pso"),
            *("pyatf_strategies", "random_sample", "simulated_annealing", "skopt"),
        ),
        packages={"skopt": ("skopt", "scikit-optimize"), "pyatf_strategies": ("pyatf", "pyatf")},
    ),
    "optuna": _Engine(
        _optuna,
        strategies=("tpe", "cmaes", "gp", "nsgaii", "qmc", "random"),
        packages={"cmaes": ("cmaes", "cmaes"), "gp": ("torch", "torch")},
    ),
}


def make_searcher(engine: str, strategy: str | None = None) -> Searcher:
    """A searcher; without a strategy, the engine's default one.

    Raises InputError for an unknown engine or strategy, and for a strategy whose package is not installed.
    """
    if engine not in _ENGINES:
        raise InputError(f"unknown engine {engine!r}{_known(engine, engine_names())}")
    names = strategy_names(engine)
    if strategy is not None and not names:
        raise InputError(f"engine {engine} has no strategies; leave strategy {strategy!r} out")
    if strategy is not None and strategy not in names:
        raise InputError(f"engine {engine}: unknown strategy {strategy!r}{_known(strategy, names)}")
    chosen = strategy or default_strategy(engine)
    module, package = _ENGINES[engine].packages.get(chosen, ("", ""))
    if module and find_spec(module) is None:
        missing = f"needs {package}, which is not installed: pip install {package}"
        raise InputError(f"engine {engine}: strategy {chosen} {missing}")
    return _ENGINES[engine].make(chosen)


def engine_names() -> tuple[str, ...]:
    """The engines."""
    return tuple(_ENGINES)


def strategy_names(engine: str) -> tuple[str, ...]:
    """The strategies of an engine in alphabetical order; none for an engine that has no choice."""
    return tuple(sorted(_ENGINES[engine].strategies))


def default_strategy(engine: str) -> str:
    """The strategy that an engine uses when none is named; empty where there is no choice."""
    return next(iter(_ENGINES[engine].strategies), "")


def _known(name: str, names: tuple[str, ...]) -> str:
    nearest = difflib.get_close_matches(name, names, n=1)
    suggestion = f"; did you mean {nearest[0]}?" if nearest else ";"
    return f"{suggestion} known: {', '.join(names)}"
