"""Transfer from other devices and problems: their times are the prior mean and the basis functions here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from autotune.core.records import DeviceInfo
from autotune.hardware.names import Traits, traits_of
from autotune.searchers.base import PriorResults
from autotune.searchers.surrogate.candidate_set import MAX_CANDIDATES
from autotune.searchers.surrogate.encoding import Encoding, Floats, Indices
from autotune.searchers.surrogate.gaussian_process import (
    NOISE,
    VARIANCE,
    HyperPrior,
    Kernel,
    default_hyper_prior,
    fit,
    slices_of,
)
from autotune.searchers.surrogate.history import MIN_SCORE, training_sample
from autotune.searchers.surrogate.time_model import TimePrior
from autotune.space import ValidSpace

MIN_OPENING = 2  # configurations that are tried before there is a model, at least
FAST_SHARE = 0.1  # of each source's configurations: where sources are compared
MIN_COMPARED, MAX_COMPARED = 20, 240  # configurations that sources are compared on
MIN_NOISE = 1e-3  # variance of log times
FAILURE_WEIGHT = 0.3  # probability that what failed on every source fails here
MIN_RESULTS = 3  # timed results that a source's model needs
LESS_WEIGHT = 0.25  # of a source of another architecture; squared for another vendor
MAX_RESULTS = 400  # results that a source's model uses: half of them the fastest


class SourceModel:
    """The known times of one source, and a Gaussian process for the others; all relative to its best.

    Far from all that ran, the process expects the slowest time: often only the fastest are known.
    """

    def __init__(self, encoding: Encoding, rows: Indices, log_ms: Floats, rng: np.random.Generator) -> None:
        """Fit a model to ascending rows and their log_ms (nan: failed), of which MIN_RESULTS are timed."""
        self.rows, self.log_ms = rows, log_ms - np.nanmin(log_ms)
        self._encoding = encoding
        fastest_first = np.argsort(self.log_ms, kind="stable")[: int((~np.isnan(log_ms)).sum())]
        chosen = training_sample(fastest_first, MAX_RESULTS, rng)
        log_times = self.log_ms[chosen]
        self._slowest, self._scale = log_times.max(), max(float(log_times.std()), 1e-3)
        self._positions = encoding.positions(rows[chosen])
        targets = (log_times - self._slowest) / self._scale
        prior = default_hyper_prior(len(encoding.axes))
        no_basis = np.empty((len(chosen), 0))
        self.kernel, _ = fit(Kernel(encoding.axes, prior.mean), prior, self._positions, targets, no_basis)
        covariance = self.kernel.covariance(self._positions, self._positions)
        covariance[np.diag_indices_from(covariance)] += self.kernel.noise
        self._solved = np.linalg.solve(covariance, targets)

    def predict(self, rows: Indices) -> tuple[Floats, NDArray[np.bool_]]:
        """Log times of candidates, and which of them failed on this source."""
        is_small = len(self._encoding.space) <= MAX_CANDIDATES  # then all rows are candidates
        predicted = self._expected_of_all[rows] if is_small else self._expected(rows)
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        has_run = self.rows[at] == rows
        log_ms = np.where(has_run, self.log_ms[at], np.nan)
        ran = ~np.isnan(log_ms)
        return np.where(ran, log_ms, predicted), has_run & ~ran

    @cached_property
    def _expected_of_all(self) -> Floats:
        return self._expected(slice(None))

    def _expected(self, rows: Indices | slice) -> Floats:
        covariance = self.kernel.covariance(self._encoding.positions(rows), self._positions)
        return np.asarray(self._slowest + self._scale * (covariance @ self._solved))


def results_in_space(space: ValidSpace, source: PriorResults) -> tuple[Indices, Floats]:
    """Rows of this space with results from a source, ascending, with their log times (nan: failed)."""
    log_times: dict[int, float] = {}
    for config, time_ms in source.results:
        row = space.index(config)
        if row is not None:
            log_times.setdefault(row, math.nan if time_ms is None else math.log(max(time_ms, MIN_SCORE)))
    rows = sorted(log_times)
    return np.array(rows, dtype=np.intp), np.array([log_times[row] for row in rows])


def source_weight(here: DeviceInfo, there: Traits) -> float:
    """The weight of a source before any trial: how similar the two devices are."""
    traits = traits_of(here)
    if traits.vendor is None or traits.vendor != there.vendor:
        return LESS_WEIGHT**2
    return 1.0 if traits.architecture == there.architecture else LESS_WEIGHT


class TransferModel:
    """The models of all sources of a search.

    Attributes:
        result_count: of all sources.
        models: of the sources with enough results, the most similar first.
        opening: rows to try before there is a model: the best of each source.
    """

    def __init__(self, encoding: Encoding, sources: Sequence[PriorResults], rng: np.random.Generator) -> None:
        self._encoding = encoding
        self.result_count = sum(len(source.results) for source in sources)
        self.models: list[SourceModel] = []
        fastest: list[list[int]] = []  # of each source, the most similar first
        here, weights = encoding.space.device, []
        for source in sorted(sources, key=lambda source: -source_weight(here, source.traits)):
            rows, log_ms = results_in_space(encoding.space, source)
            timed = int((~np.isnan(log_ms)).sum())
            if timed:
                fastest.append(rows[np.argsort(log_ms, kind="stable")[: min(timed, MIN_OPENING)]].tolist())
            if timed >= MIN_RESULTS:
                self.models.append(SourceModel(encoding, rows, log_ms, rng))
                weights.append(source_weight(here, source.traits))
        ranked = list(dict.fromkeys(row for same in zip_longest(*fastest) for row in same if row is not None))
        self.opening = ranked[: max(MIN_OPENING, len(fastest))]
        self._weights = np.array(weights) / sum(weights)
        self._hyper_prior = self._learn_hyper_prior(rng)

    def fastest_rows(self, count: int) -> Indices:
        """About `count` rows: the fastest known ones of every source, ascending."""
        each = math.ceil(count / max(1, len(self.models)))
        fastest = [model.rows[np.argsort(model.log_ms, kind="stable")[:each]] for model in self.models]
        return np.unique(np.concatenate(fastest)) if fastest else np.empty(0, dtype=np.intp)

    def prior_of(self, rows: Indices) -> tuple[TimePrior, Floats]:
        """The prior of these candidates' log times, and their failure probability; needs one source at least.

        The basis functions of the prior are the log times on each source relative to its best. Its mean is
        their average, in which more similar sources have more weight.
        """
        predictions = [model.predict(rows) for model in self.models]
        basis = np.column_stack([log_ms for log_ms, _ in predictions])
        failed = FAILURE_WEIGHT * np.mean([failed for _, failed in predictions], axis=0)
        return TimePrior(self._hyper_prior, basis @ self._weights, basis, scale=1.0), failed

    def _learn_hyper_prior(self, rng: np.random.Generator) -> HyperPrior:
        """The prior of this device's difference from the sources: as each source differs from the others.

        A single source tells along which axes differences are to be expected, but not how large they are.
        """
        axes, sources = len(self._encoding.axes), len(self.models)
        default = default_hyper_prior(axes, sources)
        if not sources:
            return default
        mean, deviation = default.mean.copy(), default.deviation.copy()
        mean[VARIANCE], deviation[VARIANCE] = 2 * math.log(0.5), 1.0
        typical = np.mean([model.kernel.hyperparameters for model in self.models], axis=0)
        lengths, depths, weights = slices_of(axes)
        for part in (lengths, depths):
            mean[part] = typical[part]
        prior = replace(default, mean=mean, deviation=deviation)
        every = [self._leave_one_out(left_out, prior, rng) for left_out in range(sources)]
        fitted = [hyperparameters for hyperparameters in every if hyperparameters is not None]
        if fitted:
            learnt = np.mean(fitted, axis=0)
            # similar sources do not promise that this device is similar
            learnt[VARIANCE] = max(learnt[VARIANCE], mean[VARIANCE])
            learnt[NOISE] = max(learnt[NOISE], math.log(MIN_NOISE))
            mean[: weights.start] = learnt[: weights.start]
        return replace(prior, mean=mean)

    def _leave_one_out(self, left_out: int, prior: HyperPrior, rng: np.random.Generator) -> Floats | None:
        """Hyperparameters of the difference between one source and the others, on fast configurations.

        None when too few configurations are known to be fast.
        """
        if len(self.models) < 2:
            return None
        model = self.models[left_out]
        rows = model.rows[~np.isnan(model.log_ms)]
        basis = np.column_stack([model.predict(rows)[0] for model in self.models])
        fast = basis <= np.quantile(basis, FAST_SHARE, axis=0)
        chosen = np.flatnonzero(fast.any(axis=1))
        if len(chosen) < MIN_COMPARED:
            return None
        chosen = rng.choice(chosen, min(len(chosen), MAX_COMPARED), replace=False)
        others = np.delete(basis[chosen], left_out, axis=1)
        weights = np.delete(self._weights, left_out)
        targets = basis[chosen, left_out] - others @ weights / weights.sum()
        own = replace(prior, mean=prior.mean[:-1], deviation=prior.deviation[:-1])
        start, positions = Kernel(self._encoding.axes, own.mean), self._encoding.positions(rows[chosen])
        return fit(start, own, positions, targets - targets.mean(), others)[0].hyperparameters
