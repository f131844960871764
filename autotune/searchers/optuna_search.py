"""Optuna's samplers, kept to valid configurations that have not been asked for yet.

The one module that knows Optuna: how a proposal becomes a row of the space, and what a sampler learns.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from autotune.core.trials import Trial
from autotune.searchers.base import Evaluate
from autotune.searchers.exhaustive import BATCH, evaluate_rows
from autotune.space import Space

MIN_MS = 1e-6  # a cycle or so of any clock: keeps the logarithm finite


@dataclass(frozen=True)
class _Recipe:
    """How one of Optuna's samplers is made and asked."""

    make: Callable[[int], BaseSampler]
    startup: int = 0  # first points, drawn uniformly from the space and asked for all at once
    batch: int = 1  # points asked for at once after that
    ordered: bool = False  # positions on an axis, for samplers that make little or nothing of categories
    objectives: int = 1  # 2: time and energy


# Measured on recorded spaces as score over time (0 random search, 1 the optimum at once). TPE: multivariate
# 0.50, parameter by parameter 0.43, startup left to its own proposals 0.37. NSGA-II: 20 a generation 0.34,
# Optuna's 50 too many for a search of some hundred trials, 0.24.
_RECIPES = {
    "tpe": _Recipe(
        lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=False), startup=10
    ),
    "gp": _Recipe(lambda seed: optuna.samplers.GPSampler(seed=seed), startup=10),
    "nsgaii": _Recipe(
        lambda seed: optuna.samplers.NSGAIISampler(seed=seed, population_size=20), startup=20, batch=5
    ),
    "nsgaii_pareto": _Recipe(
        lambda seed: optuna.samplers.NSGAIISampler(seed=seed, population_size=20),
        startup=20,
        batch=5,
        objectives=2,
    ),
    "cmaes": _Recipe(
        lambda seed: optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False),
        startup=10,
        ordered=True,
    ),
    "qmc": _Recipe(
        lambda seed: optuna.samplers.QMCSampler(seed=seed, scramble=True, warn_independent_sampling=False),
        batch=BATCH,
        ordered=True,
    ),
    "random": _Recipe(lambda seed: optuna.samplers.RandomSampler(seed=seed), batch=BATCH),
}


class OptunaSearch:
    """Asks one of Optuna's samplers until every valid configuration has been tried."""

    def __init__(self, sampler: str) -> None:
        self._recipe = _RECIPES[sampler]

    def search(self, space: Space, evaluate: Evaluate, *, seed: int) -> None:
        """Propose each valid configuration once at most; BudgetSpent passes through."""
        recipe, rng = self._recipe, np.random.default_rng(seed)
        if len(space) <= max(recipe.startup, 1):  # nothing would be left to learn for
            evaluate_rows(space, rng.permutation(len(space)), evaluate)
            return
        free = FreeRows(space.rows, rng, ordered=recipe.ordered)
        with quiet():
            sampler = _KeptToFreeRows(recipe.make(seed), space, free, recipe)
            study = optuna.create_study(sampler=sampler, directions=["minimize"] * recipe.objectives)
        wanted = recipe.startup or recipe.batch
        worst: list[float] | None = None
        while free.count:
            count = min(wanted, free.count)
            asked = [(study.ask(sampler.distributions), sampler.row) for _ in range(count)]
            answers = evaluate([space.config(row) for _, row in asked])
            told = [_values(answer, recipe.objectives) for answer in answers]
            known = [values for values in (worst, *told) if values is not None]
            worst = [max(column) for column in zip(*known, strict=True)] if known else None
            for (trial, _), values in zip(asked, told, strict=True):
                _tell(study, trial, values, worst)
            wanted = recipe.batch


def _values(trial: Trial, objectives: int) -> list[float] | None:
    """What is minimised: the logarithm of the score, for models of it are of use where it matters, below.

    With two objectives, of time and of energy; without a counter all energies are the same.
    """
    if trial.score is None or trial.measurement is None:
        return None
    both = (trial.measurement.median_ms, trial.measurement.energy_j or 1.0)
    return [math.log(max(value, MIN_MS)) for value in (both if objectives == 2 else (trial.score,))]


def _tell(study: Study, trial: optuna.Trial, values: list[float] | None, worst: list[float] | None) -> None:
    """Tell a failure as the worst value so far.

    Every sampler here goes by ranks or fits a model to the values: this ranks a failure last and leaves the
    scale alone. Told as Optuna's FAIL it would be ignored, and its neighbourhood tried again: TPE then
    scores 0.43 where it scores 0.50 with the penalty. Before the first success there is no such value.
    """
    told = worst if values is None else values
    study.tell(trial, told, state=TrialState.FAIL if told is None else TrialState.COMPLETE)


class _KeptToFreeRows(BaseSampler):
    """Puts the nearest free row in the place of each proposal of another sampler.

    The study then holds what was really run, with everything the other sampler notes down for itself, so
    it learns from that and no invalid or repeated point costs anything. A parameter's value is its position.
    """

    def __init__(self, sampler: BaseSampler, space: Space, free: FreeRows, recipe: _Recipe) -> None:
        self.row = -1  # the row that the latest trial stands for
        self.distributions: dict[str, BaseDistribution] = {
            parameter.name: IntDistribution(0, len(parameter.values) - 1)
            if recipe.ordered
            else CategoricalDistribution(range(len(parameter.values)))
            for parameter in space.parameters
            if len(parameter.values) > 1
        }
        self._sampler = sampler
        self._space = space
        self._free = free
        self._startup = recipe.startup

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """All parameters are settled together."""
        return self.distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The positions of the row taken; the other sampler is asked in startup too, for it keeps count."""
        jointly = self._sampler.infer_relative_search_space(study, trial)
        proposal = self._sampler.sample_relative(study, trial, jointly)
        for name, distribution in search_space.items():
            if name not in proposal:
                proposal[name] = self._sampler.sample_independent(study, trial, name, distribution)
        names = [parameter.name for parameter in self._space.parameters]
        if trial.number < self._startup:
            self.row = self._free.take_any()
        else:
            self.row = self._free.take_nearest([proposal.get(name, 0) for name in names])
        taken = dict(zip(names, self._space.rows[self.row].tolist(), strict=True))
        return {name: taken[name] for name in search_space}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Passed on; no parameter is left over for it."""
        return self._sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Passed on."""
        self._sampler.before_trial(study, trial)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Passed on."""
        self._sampler.after_trial(study, trial, state, values)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Optuna's log lines and its remarks on experimental features from the user."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)


class FreeRows:
    """The valid rows that have not been asked for."""

    def __init__(self, rows: NDArray[Any], rng: np.random.Generator, *, ordered: bool) -> None:
        self.count = len(rows)
        self._rng = rng
        self._taken = np.zeros(len(rows), dtype=bool)
        self._ordered = ordered
        self._columns = np.ascontiguousarray(rows.T)  # a parameter's positions lie together: fast to scan

    def take_any(self) -> int:
        """One of them, uniformly."""
        return self._take(np.flatnonzero(~self._taken))

    def take_nearest(self, positions: Sequence[int]) -> int:
        """The one nearest to a point that may be invalid or taken; one at random of those equally near.

        Distance: the number of parameters that differ (Hamming), or, where positions are ordered, the sum
        of the differences as shares of each parameter's range. Takes a millisecond per million values.
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
