"""Space-filling design: one configuration in the middle, then each as far as possible from all before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from autotune.searchers.surrogate.encoding import Axis, Floats, Positions

TIE = 1e-9


def maximin_order(
    axes: Sequence[Axis], positions: Positions, tried: Positions, rng: np.random.Generator
) -> Iterator[int]:
    """Yield each candidate once, in the order of a greedy maximin design; ties are broken at random.

    If nothing was tried, the first one lies in the middle of every ordinal axis: extreme values are the ones
    that fail together. Source: Johnson, Moore and Ylvisaker, Minimax and maximin distance designs, J. Stat.
    Plan. Inference 26 (1990).

    Args:
        axes: the parameters that vary.
        positions: of the candidates, shape (candidates, axes).
        tried: positions of earlier configurations, shape (tried, axes).
        rng: breaks ties.
    """
    nearest = np.full(len(positions), np.inf)
    for point in tried:
        np.minimum(nearest, _distances(axes, positions, point), out=nearest)
    if not len(tried):
        nearest = -_distances_from_middle(axes, positions)
    left = np.ones(len(positions), dtype=bool)
    for number in range(len(positions)):
        farthest = nearest[left].max()
        point = int(rng.choice(np.flatnonzero(left & (nearest >= farthest - TIE))))
        yield point
        left[point] = False
        if number == 0 and not len(tried):
            nearest = np.full(len(positions), np.inf)
        np.minimum(nearest, _distances(axes, positions, positions[point]), out=nearest)


def _distances(axes: Sequence[Axis], positions: Positions, point: Positions) -> Floats:
    columns = zip(axes, positions.T, point, strict=True)
    return np.asarray(np.sum([axis.distances[place][column] for axis, column, place in columns], axis=0))


def _distances_from_middle(axes: Sequence[Axis], positions: Positions) -> Floats:
    distances = [
        np.abs(axis.places - 0.5)[column]
        for axis, column in zip(axes, positions.T, strict=True)
        if axis.is_ordinal
    ]
    return np.sum(distances, axis=0) if distances else np.zeros(len(positions))
