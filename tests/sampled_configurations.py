"""What tests of all kernels try of each space: its default, its landmarks, and a pairwise covering array.

A mistake in a kernel shows itself, as a rule, for one value or for two values that come together. So of
every two values that a valid configuration can have together, one of the array has them; an element type
counts as a value, too. The default and the landmarks are tried with the first element type only.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autotune.core.records import Config, DeviceInfo
from autotune.space import SpaceSpec, ValidSpace, bind, problem_of

_CANDIDATES = 300  # rows that are compared for each that is taken


class Sample(NamedTuple):
    """What to try of the space of one element type: what is known by name, and its part of the array."""

    space: ValidSpace
    known: list[Config]
    pairwise: list[Config]


def sampled(spec: SpaceSpec, device: DeviceInfo, most: int | None = None) -> list[Sample]:
    """For each element type what to try, the same in every run; the array is one for all types together.

    Landmarks that the device cannot run are left out; of the array no more than `most` are kept, those that
    cover most.
    """
    samples = []
    named = dict.fromkeys((spec.default, *(landmark.config for landmark in spec.landmarks)))
    for dtype in spec.dtypes:
        space = bind(spec, device, problem_of(spec, device, dtype=dtype))
        samples.append(Sample(space, [config for config in named if config in space and not samples], []))
    ends = np.cumsum([len(sample.space) for sample in samples])
    which = np.repeat(np.arange(len(samples), dtype=np.int16), [len(sample.space) for sample in samples])
    rows = np.hstack([np.vstack([sample.space.rows for sample in samples]), which[:, None]])
    given = [
        int(end) - len(sample.space) + (sample.space.index(config) or 0)
        for end, sample in zip(ends, samples, strict=True)
        for config in sample.known
    ]
    for row in covering_array(rows, given, most):
        sample = samples[which[row]]
        sample.pairwise.append(sample.space.config(row - int(ends[which[row]])))  # from the type's end
    return samples


def covering_array(rows: NDArray[Any], given: Sequence[int] = (), most: int | None = None) -> list[int]:
    """Rows that, with the given ones, have every pair of values of two columns that any row has.

    Greedy: of some rows with a pair that is missing, take the one that has most missing pairs.
    No more than `most` are taken.
    """
    columns = [column.astype(np.int32) for column in rows.T]
    both = list(combinations(range(len(columns)), 2))
    sizes = [int(column.max()) + 1 for column in columns]
    starts = np.cumsum([0, *(sizes[one] * sizes[other] for one, other in both)])

    def pairs(number: int, of: NDArray[Any] | slice = slice(None)) -> NDArray[np.int32]:
        one, other = both[number]
        return int(starts[number]) + columns[one][of] * sizes[other] + columns[other][of]

    missing = np.zeros(starts[-1], bool)
    for number in range(len(both)):
        missing[pairs(number)] = True
        missing[pairs(number, np.array(given, int))] = False
    generator = np.random.default_rng(0)
    chosen = []
    while missing.any() and len(chosen) != most:
        pair = int(generator.choice(np.flatnonzero(missing)))
        number = int(np.searchsorted(starts, pair, side="right")) - 1
        having = np.flatnonzero(pairs(number) == pair)
        candidates = generator.permutation(having)[:_CANDIDATES]
        found = np.stack([pairs(number, candidates) for number in range(len(both))], axis=1)
        best = int(missing[found].sum(axis=1).argmax())
        missing[found[best]] = False
        chosen.append(int(candidates[best]))
    return chosen


def shared_out(samples: Sequence[Sample], count: int) -> list[list[tuple[ValidSpace, Config]]]:
    """The array in `count` parts: every value is in each of them, as far as there are enough."""
    parts: list[list[tuple[ValidSpace, Config]]] = [[] for _ in range(count)]
    met: list[set[object]] = [set() for _ in range(count)]
    for sample in samples:
        for config in sample.pairwise:
            values = {*config.items(), sample.space.problem.dtype}
            part = min(range(count), key=lambda one: (-len(values - met[one]), len(parts[one])))
            met[part] |= values
            parts[part].append((sample.space, config))
    return parts
