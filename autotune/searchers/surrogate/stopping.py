"""What is left to find: the chance that something untried is faster, and what trying it all would bring."""

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

FASTER = 0.01  # what counts as faster: by this share of the time
UNLIKELY = 0.01  # on recorded spaces two such models in a row were wrong 4 times of 24
DRAWS = 500
MIN_TIMES = 5


@dataclass(frozen=True)
class StoppingEstimate:
    """How much of a space was seen, and what the rest promises according to a model of the trials.

    `chance`: that something untried is at least 1% faster than the best; `gain`: share of the best's time
    that trying everything is expected to save. Both None where too few trials have a time.
    """

    seen: int
    valid: int
    chance: float | None
    gain: float | None


def stopping_estimate(space: Space, trials: Sequence[Trial], floor: float = 0.0) -> StoppingEstimate:
    """The outlook after some trials of a space, by whichever searcher they were chosen.

    No score below `floor` is possible, whatever the model makes of it.
    """
    rows = [row for trial in trials if (row := space.index(trial.config)) is not None]
    if len(rows) == len(space):
        return StoppingEstimate(len(rows), len(space), 0.0, 0.0)
    seen = History()
    seen.add(rows, [trial for trial in trials if trial.config in space])
    if (~seen.failed).sum() < MIN_TIMES:
        return StoppingEstimate(len(rows), len(space), None, None)
    axes, rng = axes_of(space.parameters), np.random.default_rng(0)
    model = Model(space.rows, axes, TransferModel(space, axes, (), rng), seen, Hyperparameters(), rng)
    best = min((trial.score for trial in trials if trial.score), default=0.0)
    least_log = math.log(floor / best) if 0 < floor <= best else -math.inf
    return StoppingEstimate(len(rows), len(space), *improvement(model, seen, least_log))


def improvement(model: Model, seen: History, least_log: float = -math.inf) -> tuple[float, float]:
    """`chance` and `gain` of an outlook; the same for the same model. Nothing lies below `least_log`."""
    logs = np.maximum(model.sample_best(seen, DRAWS, np.random.default_rng(0)), least_log)
    saved = -np.expm1(np.minimum(logs, 0.0))
    return float((saved >= FASTER).mean()), float(saved.mean())
