"""Importance of parameters and pairs of parameters for the time, by functional ANOVA of a search's trials.

A random forest learns the logarithm of the time. The variance of its predictions over all combinations of
values is split into the shares of single parameters and of pairs. Source: Hutter, Hoos and Leyton-Brown, "An
Efficient Approach for Assessing Hyperparameter Importance", ICML 2014, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from autotune.core.extras import naming_extra
from autotune.core.records import Parameter
from autotune.core.trials import Trial
from autotune.errors import InputError
from autotune.interop.recording import domains

MIN_TRIALS = 20  # fewer say nothing about pairs
MAX_TRIALS = 500  # of more a sample is used: this takes seconds, and more would hardly change the shares
_TREES = 64
_SAMPLES = 50_000  # combinations over which predictions are averaged, or all if there are fewer
_MIN_MS = 1e-6

_Key = TypeVar("_Key")
_Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Importance:
    """Shares of the variance of log time, largest first."""

    trials: int  # that were used
    fit: float  # share of the variance of unseen trials that the forest explains; below 0.5, trust no share
    single: Mapping[str, float]  # of each parameter
    pairs: Mapping[tuple[str, str], float]  # what two parameters explain together beyond the sum of both


def importance(trials: Sequence[Trial], trees: int = _TREES) -> Importance:
    """Split the variance of the successful trials' log time over their parameters, by a forest of `trees`.

    Raises InputError for fewer than MIN_TRIALS of them, different parameters, or nothing that varies, and
    MissingExtra without scikit-learn.
    """
    timed = _timed(trials)
    with naming_extra():
        from sklearn.ensemble import RandomForestRegressor  # takes a second to import

    rng = np.random.default_rng(0)
    if len(timed) > MAX_TRIALS:
        timed = [timed[index] for index in rng.choice(len(timed), MAX_TRIALS, replace=False)]
    logs = np.array([math.log(max(trial.time_ms or 0.0, _MIN_MS)) for trial in timed])
    listed = domains(timed[0].config, [trial.config for trial in timed])
    parameters = [item for item in listed if len(item.values) > 1]
    if not parameters or np.ptp(logs) == 0:
        raise InputError("importance needs trials that differ in at least one parameter and in time")
    points = np.array(
        [[item.values.index(trial.config[item.name]) for item in parameters] for trial in timed], np.int64
    )
    forest = RandomForestRegressor(n_estimators=trees, max_depth=64, oob_score=True, random_state=0)
    forest.fit(points, logs)
    sample = _combinations([len(item.values) for item in parameters], rng)
    single, pairs = _shares(parameters, sample, forest.predict(sample))
    return Importance(len(timed), float(forest.oob_score_), _descending(single), _descending(pairs))


def _timed(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that succeeded; raises InputError if they are few, or of different parameters."""
    timed = [trial for trial in trials if trial.time_ms is not None]
    if len(timed) < MIN_TRIALS:
        raise InputError(f"importance needs at least {MIN_TRIALS} trials that succeeded, found {len(timed)}")
    if any(trial.config.keys() != timed[0].config.keys() for trial in timed):
        raise InputError("importance needs trials with the same parameters; those of the journal differ")
    return timed


def _shares(
    parameters: Sequence[Parameter], sample: _Positions, predicted: NDArray[np.float64]
) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    """The shares of the predictions' variance of each parameter, and of each pair beyond both."""
    total = float(predicted.var()) or 1.0
    columns = {item.name: sample[:, place] for place, item in enumerate(parameters)}
    single = {name: _explained(column, predicted) / total for name, column in columns.items()}
    pairs = {}
    for left, right in combinations(parameters, 2):
        joint = columns[left.name] * len(right.values) + columns[right.name]
        explained = _explained(joint, predicted) / total
        pairs[left.name, right.name] = explained - single[left.name] - single[right.name]
    return single, pairs


def _combinations(lengths: Sequence[int], rng: np.random.Generator) -> _Positions:
    """Every combination of positions, or a uniform sample of them."""
    if math.prod(lengths) <= _SAMPLES:
        return np.indices(lengths).reshape(len(lengths), -1).T
    return np.column_stack([rng.integers(length, size=_SAMPLES) for length in lengths])


def _explained(groups: _Positions, values: NDArray[np.float64]) -> float:
    """Variance of the groups' means, without the part that is due to variance inside the groups."""
    sizes = np.bincount(groups)
    present = sizes > 0
    sizes = sizes[present]
    means = np.bincount(groups, weights=values)[present] / sizes
    between = float(np.average((means - values.mean()) ** 2, weights=sizes))
    within = float(values.var()) - between
    freedom = len(values) - len(sizes)
    if freedom <= 0 or sizes.min() == sizes.max():  # every combination once: exact
        return between
    return between - within * (len(sizes) - 1) / freedom


def _descending(shares: Mapping[_Key, float]) -> dict[_Key, float]:
    return {key: max(0.0, share) for key, share in sorted(shares.items(), key=lambda item: -item[1])}
