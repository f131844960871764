"""Fit the model of a search to its trials and to the results of other devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.searchers.surrogate.candidate_set import candidate_set
from autotune.searchers.surrogate.encoding import Encoding, Floats
from autotune.searchers.surrogate.history import History, training_sample
from autotune.searchers.surrogate.model import FailureModel, Model, points_of
from autotune.searchers.surrogate.time_model import TimeFit, TimeModel, plain_prior
from autotune.searchers.surrogate.transfer import TransferModel

MAX_TRAINING = 500  # trials that a model is fitted to: of more, the fastest half and a sample
MIN_TO_COMPARE = 10  # trials before which a model with sources is not compared with one without
MAX_SOURCE_ROWS = 1000  # fastest configurations of the sources that are always candidates


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """Hyperparameters of the latest fits, from which the next ones start."""

    time: Floats | None = None
    time_without_sources: Floats | None = None
    failure: Floats | None = None


def fit_model(
    encoding: Encoding,
    transfer: TransferModel,
    history: History,
    last: Hyperparameters,
    rng: np.random.Generator,
    pending: Sequence[int] = (),
) -> tuple[Model, Hyperparameters]:
    """Fit both processes to a history in which at least two trials have a time.

    `pending` are rows that were proposed and have no trial yet.
    """
    fastest_first = np.argsort(history.log_score, kind="stable")  # failures last
    training = training_sample(fastest_first, MAX_TRAINING, rng)
    under_way = np.array(pending, np.intp)
    required = np.concatenate([history.rows[training], transfer.fastest_rows(MAX_SOURCE_ROWS), under_way])
    rows = candidate_set(encoding, required, rng)
    positions = encoding.positions(rows)

    failed = history.failed[training]
    timed = training[~failed]
    points, log_score = points_of(rows, history.rows[timed]), history.log_score[timed]
    data = encoding.axes, positions, points, log_score
    chosen = alone = TimeFit(*data, plain_prior(len(encoding.axes), len(rows)), last.time_without_sources)
    time, failed_elsewhere = None, np.zeros(len(rows))
    if transfer.models:
        prior, failed_elsewhere = transfer.predict(rows)
        with_sources = TimeFit(*data, prior, last.time)
        time = with_sources.kernel.values
        if len(history) < MIN_TO_COMPARE or with_sources.evidence >= alone.evidence:
            chosen = with_sources
    times = TimeModel(chosen, positions, points, log_score, history.log_cost[timed])

    failure, failures = last.failure, None
    if failed.any():
        points = points_of(rows, history.rows[training])
        failures = FailureModel(encoding.axes, positions, points, failed, failure)
        failure = failures.kernel.values
    model = Model(history, rows, times, failures, failed_elsewhere, pending)
    return model, Hyperparameters(time, alone.kernel.values, failure)
