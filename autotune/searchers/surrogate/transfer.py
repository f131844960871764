"""Transfer from other devices and problems: their times are the basis functions of the process here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from autotune.searchers.base import SourceResults
from autotune.searchers.surrogate.encoding import Encoding, Floats, Indices
from autotune.searchers.surrogate.gaussian_process import (
    NOISE,
    VARIANCE,
    HyperPrior,
    Kernel,
    Layout,
    default_hyper_prior,
    fit,
)
from autotune.searchers.surrogate.source_model import MIN_RESULTS, SourceModel, results_in_space
from autotune.searchers.surrogate.time_model import TimePrior

SCALE_SAMPLE = 2000  # rows that put the sources on one scale
FAST_SHARE = 0.1  # of each source's configurations: where sources are compared
MIN_COMPARED, MAX_COMPARED = 20, 240  # configurations that sources are compared on
MIN_NOISE_SHARE = 1e-3
FAILURE_WEIGHT = 0.3  # probability that what failed on every source fails here


@dataclass(frozen=True, eq=False)
class TransferPrediction:
    """What the sources predict for some candidates.

    Attributes:
        times: prior of log times; its basis functions are those on each source, centred and scaled.
        relative_speed: each source's best time over that of the candidate, shape (candidates, sources).
        observed: whether at least one source ran the candidate.
        failure_probability: estimated from the share of sources on which the candidate failed.
    """

    times: TimePrior
    relative_speed: Floats
    observed: NDArray[np.bool_]
    failure_probability: Floats


class TransferModel:
    """The models of all sources of a search."""

    def __init__(
        self, encoding: Encoding, sources: Sequence[SourceResults], rng: np.random.Generator
    ) -> None:
        self._encoding = encoding
        self.results = sum(len(source.results) for source in sources)
        self.models: list[SourceModel] = []
        self.bests_without_model: list[int] = []  # of sources with too few results
        for source in sources:
            rows, log_ms = results_in_space(encoding.space, source)
            timed = int((~np.isnan(log_ms)).sum())
            if timed >= MIN_RESULTS:
                self.models.append(SourceModel(encoding, rows, log_ms, rng))
            elif timed:
                self.bests_without_model.append(int(rows[np.nanargmin(log_ms)]))
        self._scale, self._centres, self._bests = 1.0, np.zeros(0), np.zeros(0)
        if self.models:
            sample = np.unique(rng.integers(0, len(encoding.space), SCALE_SAMPLE))
            log_ms = self._log_ms(sample)
            self._scale = max(float(log_ms.std(axis=0).mean()), 1e-3)
            self._centres = log_ms.mean(axis=0)
            self._bests = np.array([model.best for model in self.models])
        self._hyper_prior = self._learn_hyper_prior(rng)

    def fastest_rows(self, count: int) -> Indices:
        """About `count` rows: the fastest known ones of every source, ascending."""
        each = math.ceil(count / max(1, len(self.models)))
        fastest = [model.rows[np.argsort(model.log_ms, kind="stable")[:each]] for model in self.models]
        return np.unique(np.concatenate(fastest)) if fastest else np.empty(0, dtype=np.intp)

    def predict(self, rows: Indices) -> TransferPrediction:
        """Predict times and failures of these candidates from all sources, of which there is one at least."""
        predictions = [model.predict(rows) for model in self.models]
        log_ms = np.column_stack([times for times, _, _ in predictions])
        basis = (log_ms - self._centres) / self._scale
        return TransferPrediction(
            times=TimePrior(self._hyper_prior, basis.mean(axis=1), basis, self._scale),
            relative_speed=np.exp(np.minimum(self._bests - log_ms, 0.0)),
            observed=np.any([ran for _, ran, _ in predictions], axis=0),
            failure_probability=FAILURE_WEIGHT * np.mean([failed for _, _, failed in predictions], axis=0),
        )

    def _log_ms(self, rows: Indices) -> Floats:
        return np.column_stack([model.predict(rows)[0] for model in self.models])

    def _learn_hyper_prior(self, rng: np.random.Generator) -> HyperPrior:
        """How this device may differ from the sources: as each source differs from the rest of them.

        A single source tells along which axes differences are to be expected, but not how large they are.
        """
        layout, sources = Layout(len(self._encoding.axes)), len(self.models)
        default = default_hyper_prior(layout.axes, sources)
        if not sources:
            return default
        mean, spread = default.mean.copy(), default.spread.copy()
        mean[VARIANCE], spread[VARIANCE] = 2 * math.log(0.5), 1.0
        typical = np.mean([model.kernel.values for model in self.models], axis=0)
        for shape in (layout.lengths, layout.depths):
            mean[shape] = typical[shape]
        prior = replace(default, mean=mean, spread=spread)
        every = [self._leave_one_out(left_out, prior, rng) for left_out in range(sources)]
        fitted = [values for values in every if values is not None]
        if fitted:
            learnt = np.mean(fitted, axis=0)  # with a weight less: that of the source left out
            weight = learnt[layout.weights].mean()
            # sources that are alike do not promise that this device is like them
            learnt[VARIANCE] = max(learnt[VARIANCE], mean[VARIANCE])
            learnt[NOISE] = max(learnt[NOISE], math.log(MIN_NOISE_SHARE))
            mean = np.append(learnt, weight)
            mean[layout.weights] = weight
        return replace(prior, mean=mean)

    def _leave_one_out(self, left_out: int, prior: HyperPrior, rng: np.random.Generator) -> Floats | None:
        """Hyperparameters of the difference between one source and the others, on fast configurations.

        None when too few configurations are known to be fast.
        """
        if len(self.models) < 2:
            return None
        model = self.models[left_out]
        rows = model.rows[~np.isnan(model.log_ms)]
        basis = (self._log_ms(rows) - self._centres) / self._scale
        fast = basis <= np.quantile(basis, FAST_SHARE, axis=0)
        chosen = np.flatnonzero(fast.any(axis=1))
        if len(chosen) < MIN_COMPARED:
            return None
        chosen = rng.choice(chosen, min(len(chosen), MAX_COMPARED), replace=False)
        others = np.delete(basis[chosen], left_out, axis=1)
        targets = basis[chosen, left_out] - others.mean(axis=1)
        own = replace(prior, mean=prior.mean[:-1], spread=prior.spread[:-1])
        start, positions = Kernel(self._encoding.axes, own.mean), self._encoding.positions(rows[chosen])
        return fit(start, own, positions, targets - targets.mean(), others)[0].values
