"""Optuna's samplers as searchers, restricted to valid configurations that were not tried yet."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from autotune.core.records import Config
from autotune.core.trials import Trial
from autotune.searchers.base import ROWS_AT_ONCE, TrialStream, collect_next
from autotune.searchers.whole_space import RandomSearch
from autotune.space import ValidSpace

MIN_MS = 1e-6  # keeps the logarithm finite


@dataclass(frozen=True)
class _SamplerSettings:
    """One of Optuna's samplers: makes it from a seed, and says how to use it."""

    make: Callable[[int], BaseSampler]
    startup: int = 0  # first points, drawn uniformly in place of the sampler's proposals, in one batch
    batch: int = 1  # points per batch after that
    ordered: bool = False  # positions are integers, for samplers that handle categories badly
    objectives: int = 1  # 2: time and energy


# Scores over time on recorded spaces (0: random, 1: the optimum at once). TPE: multivariate 0.50,
# parameter by parameter 0.43, with its own startup 0.37. NSGA-II: 0.34 with a population of 20, 0.24 with
# Optuna's default of 50, too many for a search of some hundred trials.
_NSGAII = _SamplerSettings(
    lambda seed: optuna.samplers.NSGAIISampler(seed=seed, population_size=20), startup=20, batch=5
)
_SAMPLERS = {
    "tpe": _SamplerSettings(
        lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=False), startup=10
    ),
    "gp": _SamplerSettings(lambda seed: optuna.samplers.GPSampler(seed=seed), startup=10),
    "nsgaii": _NSGAII,
    "nsgaii_pareto": replace(_NSGAII, objectives=2),
    "cmaes": _SamplerSettings(
        lambda seed: optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False),
        startup=10,
        ordered=True,
    ),
    "qmc": _SamplerSettings(
        lambda seed: optuna.samplers.QMCSampler(seed=seed, scramble=True, warn_independent_sampling=False),
        batch=ROWS_AT_ONCE,
        ordered=True,
    ),
    "random": _SamplerSettings(lambda seed: optuna.samplers.RandomSampler(seed=seed), batch=ROWS_AT_ONCE),
}


class OptunaSearch:
    """Follows one of Optuna's samplers until every valid configuration was tried."""

    def __init__(self, sampler: str) -> None:
        self._settings = _SAMPLERS[sampler]

    def search(self, space: ValidSpace, stream: TrialStream, *, seed: int) -> None:
        """Propose every valid configuration once; NoMoreTrials passes through."""
        settings = self._settings
        if len(space) <= max(settings.startup, 1):  # the startup would be the whole space
            RandomSearch().search(space, stream, seed=seed)
            return
        free = FreeRows(space.rows, np.random.default_rng(seed), ordered=settings.ordered)
        with quiet():
            sampler = _NearestFreeRowSampler(settings.make(seed), space, free, settings)
            study = optuna.create_study(sampler=sampler, directions=["minimize"] * settings.objectives)
        batch = settings.startup or settings.batch
        worst: list[float] | None = None
        asked: dict[Config, optuna.Trial] = {}  # under way
        while free.count or asked:
            fresh = {}
            for _ in range(min(max(batch, stream.parallel) - len(asked), free.count)):
                optuna_trial = study.ask(sampler.distributions)
                places = optuna_trial.params  # of parameters that have several values
                config = {item.name: item.values[places.get(item.name, 0)] for item in space.parameters}
                fresh[Config(config)] = optuna_trial
            asked |= fresh
            stream.submit(list(fresh))
            ended = collect_next(stream, len(asked))
            ended_values = [_objective_values(trial, settings.objectives) for trial in ended]
            measured = [values for values in (worst, *ended_values) if values is not None]
            worst = [max(column) for column in zip(*measured, strict=True)] if measured else None
            for trial, values in zip(ended, ended_values, strict=True):
                _tell(study, asked.pop(trial.config), values, worst)
            batch = settings.batch


def _objective_values(trial: Trial, objectives: int) -> list[float] | None:
    """The values to minimise: the logarithm of the score or, with two objectives, of time and of energy.

    Logarithms make models precise where scores are low. Without an energy counter all energies are equal.
    """
    if trial.score is None or trial.measurement is None:
        return None
    both = (trial.measurement.median_ms, trial.measurement.energy_j or 1.0)
    return [math.log(max(value, MIN_MS)) for value in (both if objectives == 2 else (trial.score,))]


def _tell(study: Study, trial: optuna.Trial, values: list[float] | None, worst: list[float] | None) -> None:
    """Report a trial; a failure counts as the worst value so far, if there is one.

    All samplers use ranks or fit a model to the values: this ranks a failure last and keeps the scale. They
    would ignore Optuna's state FAIL and try the same neighbourhood again: TPE then scores 0.43, not 0.50.
    """
    reported = worst if values is None else values
    state = TrialState.FAIL if reported is None else TrialState.COMPLETE
    study.tell(trial, reported, state=state)


class _NearestFreeRowSampler(BaseSampler):
    """Replaces each proposal of another sampler by the nearest valid row that was not tried yet.

    The study then holds what was evaluated, so the other sampler learns from it, and no invalid or repeated
    point is evaluated. A parameter's value in the study is its position.
    """

    def __init__(
        self, sampler: BaseSampler, space: ValidSpace, free: FreeRows, settings: _SamplerSettings
    ) -> None:
        self.distributions: dict[str, BaseDistribution] = {
            parameter.name: IntDistribution(0, len(parameter.values) - 1)
            if settings.ordered
            else CategoricalDistribution(range(len(parameter.values)))
            for parameter in space.parameters
            if len(parameter.values) > 1
        }
        self._sampler = sampler
        self._space = space
        self._free = free
        self._startup = settings.startup

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """All parameters are sampled together."""
        return self.distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Positions of a free row; the other sampler is asked at the startup too: it counts its proposals."""
        jointly = self._sampler.infer_relative_search_space(study, trial)
        proposal = self._sampler.sample_relative(study, trial, jointly)
        for name, distribution in search_space.items():
            if name not in proposal:
                proposal[name] = self._sampler.sample_independent(study, trial, name, distribution)
        names = [parameter.name for parameter in self._space.parameters]
        if trial.number < self._startup:
            row = self._free.take_any()
        else:
            row = self._free.take_nearest([proposal.get(name, 0) for name in names])
        taken = dict(zip(names, self._space.rows[row].tolist(), strict=True))
        return {name: taken[name] for name in search_space}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Ask the other sampler; no parameter is left for it."""
        return self._sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Call the other sampler."""
        self._sampler.before_trial(study, trial)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Call the other sampler."""
        self._sampler.after_trial(study, trial, state, values)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress Optuna's log lines and its warnings of experimental features."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)


class FreeRows:
    """The valid rows that were not tried yet."""

    def __init__(self, rows: NDArray[Any], rng: np.random.Generator, *, ordered: bool) -> None:
        self.count = len(rows)
        self._rng = rng
        self._taken = np.zeros(len(rows), dtype=bool)
        self._ordered = ordered
        self._columns = np.ascontiguousarray(rows.T)  # one parameter's positions are contiguous: fast to scan

    def take_any(self) -> int:
        """Take one at random."""
        return self._take(np.flatnonzero(~self._taken))

    def take_nearest(self, positions: Sequence[int]) -> int:
        """Take the row nearest to a point, which may be invalid or taken; ties are broken at random.

        Distance: the number of parameters that differ (Hamming), or for ordered positions the sum of the
        differences as shares of each parameter's range. Takes a millisecond per million values.
        """
        distance = np.zeros(len(self._taken), dtype=np.float32)
        for column, position in zip(self._columns, positions, strict=True):
            if self._ordered:
                distance += np.abs(column.astype(np.float32) - position) / max(1, int(column.max()))
            else:
                distance += column != position
        distance[self._taken] = np.inf
        return self._take(np.flatnonzero(distance == distance.min()))

    def _take(self, candidates: NDArray[np.int64]) -> int:
        row = int(self._rng.choice(candidates))
        self._taken[row] = True
        self.count -= 1
        return row
