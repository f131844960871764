"""The table of searchers by engine and strategy; a library is imported only when its engine is chosen.

Other distributions add engines by entry points of the group `autotune.searchers`: a name and a class.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from autotune.core.extras import EXTRAS
from autotune.core.plugins import load, plugin_error, plugins
from autotune.core.text import hint
from autotune.errors import InputError, MissingExtra
from autotune.searchers.base import PriorResults, Searcher

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True)
class _Engine:
    """An engine's searcher: its place and abilities.

    The searcher is made with the strategy if there is a choice, and with the results if it uses some.
    """

    module: str
    searcher: str  # the name of its class
    strategies: tuple[str, ...] = ()  # the default one first; empty if there is no choice
    extra: str = ""  # that brings its library; empty if it needs none
    # module and distribution of optional packages, by the strategy that needs them
    packages: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    uses_priors: bool = False  # it learns from results of other devices
    can_stop: bool = False  # it estimates when to stop


_ENGINES = {
    "surrogate": _Engine("autotune.searchers.surrogate", "SurrogateSearch", uses_priors=True, can_stop=True),
    "exhaustive": _Engine("autotune.searchers.whole_space", "ExhaustiveSearch"),
    "random": _Engine("autotune.searchers.whole_space", "RandomSearch"),
    "kernel_tuner": _Engine(
        "autotune.searchers.kernel_tuner_search",
        "KernelTunerSearch",
        strategies=(
            *("hybrid_vndx", "adaptive_tabu_greywolf", "basinhopping", "bayes_opt", "brute_force"),
            *("diff_evo", "dual_annealing", "firefly_algorithm", "genetic_algorithm", "greedy_ils"),
            *("greedy_mls", "minimize", "mls", "nsga2", "nsga3", "ordered_greedy_mls", "pso"),
            *("pyatf_strategies", "random_sample", "simulated_annealing", "skopt"),
        ),
        extra="kernel-tuner",
        packages={"skopt": ("skopt", "scikit-optimize"), "pyatf_strategies": ("pyatf", "pyatf")},
    ),
    "optuna": _Engine(
        "autotune.searchers.optuna_search",
        "OptunaSearch",
        strategies=("tpe", "cmaes", "gp", "nsgaii", "nsgaii_pareto", "qmc", "random"),
        extra="optuna",
        packages={"cmaes": ("cmaes", "cmaes"), "gp": ("torch", "torch")},
    ),
    "adopt": _Engine("autotune.searchers.adoption", "AdoptionSearch", uses_priors=True),
}


@cache
def _engines() -> Mapping[str, _Engine]:
    """All engines: autotune's, and other distributions' under other names."""
    return _ENGINES | {name: _Engine(entry.module, entry.attr) for name, entry in _plugins().items()}


def _plugins() -> Mapping[str, EntryPoint]:
    return plugins("autotune.searchers", frozenset(_ENGINES))


def _engine(name: str) -> _Engine:
    """An engine by its name; raises InputError for an unknown one."""
    entry = _ENGINES.get(name) or _engines().get(name)  # others are looked for only under other names
    if entry is None:
        raise InputError(f"unknown engine {name!r}{hint(name, engine_names())}")
    return entry


def check_searcher(engine: str, strategy: str | None = None, *, stop_when_unlikely: bool = False) -> None:
    """Check what `make_searcher` takes, without importing a library.

    Raises:
        InputError: for an unknown engine or strategy, a strategy whose package is not installed, and an
            engine that cannot tell when to stop.
        MissingExtra: for an engine whose library is not installed.
    """
    entry = _engine(engine)
    names = strategy_names(engine)
    if strategy is not None and not names:
        raise InputError(f"engine {engine} has no strategies; leave strategy {strategy!r} out")
    if strategy is not None and strategy not in names:
        raise InputError(f"engine {engine}: unknown strategy {strategy!r}{hint(strategy, names)}")
    for library in EXTRAS.get(entry.extra, ()):
        if find_spec(library) is None:
            raise MissingExtra(library, entry.extra)
    chosen = strategy or default_strategy(engine)
    module, package = entry.packages.get(chosen, ("", ""))
    if module and find_spec(module) is None:
        missing = f"needs {package}, which is not installed: pip install {package}"
        raise InputError(f"engine {engine}: strategy {chosen} {missing}")
    if stop_when_unlikely and not entry.can_stop:
        able = ", ".join(name for name, other in _engines().items() if other.can_stop)
        raise InputError(f"engine {engine} cannot tell when to stop: --stop-when-unlikely needs {able}")


def make_searcher(
    engine: str,
    strategy: str | None = None,
    *,
    priors: Collection[PriorResults] = (),
    stop_when_unlikely: bool = False,
) -> Searcher:
    """Make a searcher, which may start from priors; raises InputError if `check_searcher` finds a mistake."""
    check_searcher(engine, strategy, stop_when_unlikely=stop_when_unlikely)
    if engine not in _ENGINES:
        return _made(_plugins()[engine])
    entry, chosen = _ENGINES[engine], strategy or default_strategy(engine)
    searcher = getattr(import_module(entry.module), entry.searcher)
    arguments: list[object] = [chosen] if entry.strategies else []
    if entry.uses_priors:
        arguments.append(priors)
    options = {"stop_when_unlikely": stop_when_unlikely} if entry.can_stop else {}
    made: Searcher = searcher(*arguments, **options)
    return made


def _made(entry: EntryPoint) -> Searcher:
    """The searcher of another distribution; raises InputError if it is none."""
    searcher = load(entry, "search")
    try:
        made: Searcher = searcher()
    except Exception as error:  # noqa: BLE001 - the code of others
        raise plugin_error(entry, error) from None
    return made


def learns_from_priors(engine: str) -> bool:
    """True if an engine learns from results of other devices; False for an unknown one."""
    return engine in _ENGINES and _ENGINES[engine].uses_priors


def engine_names() -> tuple[str, ...]:
    """The engines."""
    return tuple(_engines())


def strategy_names(engine: str) -> tuple[str, ...]:
    """The strategies of an engine in alphabetical order; empty if it has no choice."""
    return tuple(sorted(_engine(engine).strategies))


def default_strategy(engine: str) -> str:
    """The strategy that an engine uses when none is named; empty if it has no choice."""
    return next(iter(_engine(engine).strategies), "")
