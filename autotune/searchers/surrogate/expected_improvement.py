"""The expected improvement of a normal value over the best so far, as a logarithm."""

from __future__ import annotations

import math

import numpy as np
import scipy

from autotune.searchers.surrogate.encoding import Floats

HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


def log_expected_improvement(best: float, mean: Floats, deviation: Floats) -> Floats:
    """Log of the expected amount by which a normal value falls below `best`; finite far above it too.

    Source: Ament, Daulton, Eriksson, Balandat and Bakshy, Unexpected Improvements to Expected Improvement
    for Bayesian Optimization (NeurIPS 2023), section 4.1.
    """
    z = (best - mean) / deviation
    log_density = -0.5 * z**2 - HALF_LOG_2_PI
    above = z > -1.0
    high, low = z[above], z[~above]
    improvement = np.empty_like(z)
    improvement[above] = np.log(np.exp(log_density[above]) + high * scipy.special.ndtr(high))
    # 1 + z * Phi(z) / phi(z) cancels: 1 / z^2 where its terms can no longer be told apart
    tail = 1.0 + low * math.sqrt(math.pi / 2) * scipy.special.erfcx(-low / math.sqrt(2))
    log_tail = np.log(np.where(low < -1e3, low**-2.0, np.maximum(tail, 1e-300)))
    improvement[~above] = log_density[~above] + log_tail
    return np.log(deviation) + improvement
