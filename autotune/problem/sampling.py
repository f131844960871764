"""Samples of outputs, for references too slow to compute every element."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from autotune.devices.base import Indices
from autotune.problem.workload import Array

INDICES = "indices"  # the parameter of a reference that computes samples
# A change of these changes samples: raise the version in `reference_cache` as well.
MAX_WHOLE = 2**14  # elements; smaller outputs are compared in full
_SAMPLE = 1024  # elements of a larger output that are compared
_ENDS = 32  # of these, the elements at either end


def takes_indices(reference: Callable[..., Any]) -> bool:
    """True if a reference computes samples: it has a parameter `indices`."""
    try:
        return INDICES in inspect.signature(reference).parameters
    except (TypeError, ValueError):  # not a Python function
        return False


def sample_indices(array: Array, seed: int) -> Indices:
    """The elements of an output to compare, as indices of the flat array, sorted.

    A small output is compared in full. A larger one is sampled: both ends, and one element drawn from each of
    equally long parts. A wrong stretch as long as two parts is always found. Another seed gives another
    sample.
    """
    count = array.count
    if count <= MAX_WHOLE:
        return np.arange(count)
    draw = np.random.default_rng([seed, zlib.crc32(array.name.encode())])
    bounds = np.linspace(0, count, _SAMPLE - 2 * _ENDS + 1).astype(np.int64)
    ends = (np.arange(_ENDS), np.arange(count - _ENDS, count))
    return np.unique(np.concatenate([*ends, draw.integers(bounds[:-1], bounds[1:])]))
