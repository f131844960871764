"""Samples of outputs, for references that are too slow to compute every element."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from autotune.devices.base import Indices
from autotune.problem.problem_instance import Array

INDICES = "indices"  # the parameter of a reference that is asked for a sample
# A change of these changes samples, so raise the version in `kept_results`, too.
MAX_WHOLE = 2**14  # elements; smaller outputs are compared in full
_SAMPLE = 1024  # elements of larger ones
_ENDS = 32  # of these at either end


def takes_indices(reference: Callable[..., Any]) -> bool:
    """Whether a reference is asked for a sample: it has a parameter `indices`."""
    try:
        return INDICES in inspect.signature(reference).parameters
    except (TypeError, ValueError):  # it is no Python function
        return False


def sample_indices(array: Array, seed: int) -> Indices:
    """The elements of an output to compare, as indices of the flat array, sorted.

    They are all elements of a small output. Of a larger one they are both ends, and one element drawn from
    each of equally long parts: two whole parts that are wrong are always found.

    Args:
        array: The output.
        seed: The problem's; another seed gives another sample.
    """
    count = array.count
    if count <= MAX_WHOLE:
        return np.arange(count)
    draw = np.random.default_rng([seed, zlib.crc32(array.name.encode())])
    bounds = np.linspace(0, count, _SAMPLE - 2 * _ENDS + 1).astype(np.int64)
    ends = (np.arange(_ENDS), np.arange(count - _ENDS, count))
    return np.unique(np.concatenate([*ends, draw.integers(bounds[:-1], bounds[1:])]))
