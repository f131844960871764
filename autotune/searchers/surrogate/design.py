"""Points to begin with: one in the middle, then each as far as can be from all before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from autotune.searchers.surrogate.encoding import Axis, Floats, Positions

TIE = 1e-9


def spread(
    axes: Sequence[Axis], positions: Positions, apart_from: Positions, rng: np.random.Generator
) -> Iterator[int]:
    """Candidates in the order of a space-filling design, each once; those equally good in random order.

    positions (candidates, axes); apart_from: positions already tried. With none of those the first point
    lies in the middle of every axis that has one: extreme values are the ones that go wrong together.
    Source: greedy maximin design, Johnson, Moore and Ylvisaker, J. Stat. Plan. Inference 26 (1990).
    """
    nearest = np.full(len(positions), np.inf)
    for tried in apart_from:
        np.minimum(nearest, _distances(axes, positions, tried), out=nearest)
    if not len(apart_from):
        nearest = -_from_middle(axes, positions)
    left = np.ones(len(positions), dtype=bool)
    for number in range(len(positions)):
        farthest = nearest[left].max()
        point = int(rng.choice(np.flatnonzero(left & (nearest >= farthest - TIE))))
        yield point
        left[point] = False
        if number == 0 and not len(apart_from):
            nearest = np.full(len(positions), np.inf)
        np.minimum(nearest, _distances(axes, positions, positions[point]), out=nearest)


def _distances(axes: Sequence[Axis], positions: Positions, point: Positions) -> Floats:
    columns = zip(axes, positions.T, point, strict=True)
    return np.asarray(np.sum([axis.distances[place][column] for axis, column, place in columns], axis=0))


def _from_middle(axes: Sequence[Axis], positions: Positions) -> Floats:
    columns = [(axis, column) for axis, column in zip(axes, positions.T, strict=True) if axis.is_ordinal]
    away = [np.abs(axis.places - 0.5)[column] for axis, column in columns]
    return np.sum(away, axis=0) if away else np.zeros(len(positions))
