"""Estimates the probability that an untried configuration is faster, and the time it would save."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from autotune.core.trials import Trial
from autotune.searchers.base import FASTER, StoppingEstimate
from autotune.searchers.surrogate.blas_threads import one_blas_thread
from autotune.searchers.surrogate.encoding import Encoding
from autotune.searchers.surrogate.history import History
from autotune.searchers.surrogate.model import Model, ModelFitter
from autotune.space import ValidSpace

UNLIKELY = 0.01  # on recorded spaces two such models in a row were wrong 4 times of 24
DRAWS = 500
MIN_TIMED = 5


def stopping_estimate(space: ValidSpace, trials: Sequence[Trial], floor: float = 0.0) -> StoppingEstimate:
    """Estimate what is left to find after some trials, whichever searcher chose them.

    A trial outside the space does not count. `floor` is the best score that is possible on the device.
    """
    trial_of = {row: trial for trial in trials if (row := space.index(trial.config)) is not None}
    if len(trial_of) == len(space):
        return StoppingEstimate(len(space), len(space), 0.0, 0.0)
    history = History()
    history.add(list(trial_of), list(trial_of.values()))
    if (~history.failed).sum() < MIN_TIMED:
        return StoppingEstimate(len(trial_of), len(space), None, None)
    best = min((trial.score for trial in trials if trial.score), default=0.0)
    log_floor = math.log(floor / best) if 0 < floor <= best else -math.inf
    with one_blas_thread():
        model = ModelFitter(Encoding(space), (), np.random.default_rng(0)).fit(history)
        return StoppingEstimate(len(trial_of), len(space), *improvement(model, log_floor))


def improvement(model: Model, log_floor: float = -math.inf) -> tuple[float, float]:
    """Improvement probability and expected improvement; equal models give equal values.

    `log_floor` is the logarithm of the best possible score relative to the best so far.
    """
    logs = np.maximum(model.sample_best(DRAWS, np.random.default_rng(0)), log_floor)
    saved = -np.expm1(np.minimum(logs, 0.0))
    return float((saved >= FASTER).mean()), float(saved.mean())
