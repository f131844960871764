"""When to stop: the probability that an untried configuration is faster, and the time it would save."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.core.trials import Trial
from autotune.searchers.surrogate.encoding import axes_of
from autotune.searchers.surrogate.history import History
from autotune.searchers.surrogate.model import Hyperparameters, Model
from autotune.searchers.surrogate.transfer import TransferModel
from autotune.space import Space

FASTER = 0.01  # share of the time by which something counts as faster
UNLIKELY = 0.01  # on recorded spaces two such models in a row were wrong 4 times of 24
DRAWS = 500
MIN_TIMED = 5


@dataclass(frozen=True)
class StoppingEstimate:
    """How much of a space was tried, and what the rest promises according to a model of the trials.

    Attributes:
        tried: configurations that were tried.
        valid: configurations of the space.
        improvement_probability: that an untried one is at least 1% faster than the best.
        expected_improvement: share of the best time that trying all of them is expected to save. Both are
            None where too few trials have a time.
    """

    tried: int
    valid: int
    improvement_probability: float | None
    expected_improvement: float | None


def stopping_estimate(space: Space, trials: Sequence[Trial], floor: float = 0.0) -> StoppingEstimate:
    """Estimate what is left to find after some trials, whichever searcher chose them.

    Args:
        space: the space that was searched.
        trials: of the search; those outside the space do not count.
        floor: the best score that is possible on the device.
    """
    trial_of = {row: trial for trial in trials if (row := space.index(trial.config)) is not None}
    if len(trial_of) == len(space):
        return StoppingEstimate(len(space), len(space), 0.0, 0.0)
    history = History()
    history.add(list(trial_of), list(trial_of.values()))
    if (~history.failed).sum() < MIN_TIMED:
        return StoppingEstimate(len(trial_of), len(space), None, None)
    axes, rng = axes_of(space.parameters), np.random.default_rng(0)
    transfer = TransferModel(space, axes, (), rng)
    model = Model(space.rows, axes, transfer, history, Hyperparameters(), rng)
    best = min((trial.score for trial in trials if trial.score), default=0.0)
    log_floor = math.log(floor / best) if 0 < floor <= best else -math.inf
    return StoppingEstimate(len(trial_of), len(space), *improvement(model, history, log_floor))


def improvement(model: Model, history: History, log_floor: float = -math.inf) -> tuple[float, float]:
    """Improvement probability and expected improvement; equal models give equal values.

    Args:
        model: The fitted model.
        history: The trials that it was fitted to.
        log_floor: Logarithm of the best possible score relative to the best so far.
    """
    logs = np.maximum(model.sample_best(history, DRAWS, np.random.default_rng(0)), log_floor)
    saved = -np.expm1(np.minimum(logs, 0.0))
    return float((saved >= FASTER).mean()), float(saved.mean())
