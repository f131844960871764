"""Which configurations of other devices a search tries first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np

from autotune.searchers.surrogate.encoding import Axis, Positions
from autotune.searchers.surrogate.gaussian_process import Kernel
from autotune.searchers.surrogate.transfer import TransferPrediction

MIN_CONFIGS = 3  # that are tried before there is a model
COVERED = 0.97  # a source is covered when a chosen configuration reaches this share of its best speed


def portfolio(prediction: TransferPrediction, axes: Sequence[Axis], positions: Positions) -> list[int]:
    """Candidates to try first, the most useful one first.

    Greedy coverage: each adds most to the mean over sources of the best relative speed, until every source is
    covered. Then, up to MIN_CONFIGS, the sources in turns: what is fast and unlike all chosen before, by
    relative speed times the variance that those leave unexplained.
    """
    speed = prediction.relative_speed
    covered = np.zeros(speed.shape[1])
    usable = np.where(prediction.observed, 1.0 - prediction.failure_probability, 0.0)
    chosen: list[int] = []
    while len(chosen) < len(covered) and covered.min(initial=1.0) < COVERED:
        score = np.maximum(speed, covered).mean(axis=1) * usable
        score += 1e-3 * speed.mean(axis=1)
        score[chosen] = -1.0
        best = int(np.argmax(score))
        chosen.append(best)
        covered = np.maximum(covered, speed[best])
    kernel = Kernel(axes, prediction.times.hyper.mean)
    for source in cycle(range(len(covered))):
        if len(chosen) >= min(MIN_CONFIGS, len(usable)):
            break
        correlation = kernel.covariance(positions, positions[chosen]).max(axis=1) / kernel.variance
        score = speed[:, source] * usable * (1.0 - correlation**2)
        score[chosen] = -1.0
        chosen.append(int(np.argmax(score)))
    return chosen
