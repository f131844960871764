"""Points to begin with: one in the middle, then each as far as can be from all before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.searchers.surrogate.encoding import Axis, Floats, Positions
from autotune.space.enumeration import Rows, find_rows

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


Indices = NDArray[np.intp]
MAX_CANDIDATES = 12_000  # candidates: with a few hundred measurements some milliseconds for each new one
CENTRES = 20  # of the fastest: their neighbours are all candidates
JUMPS = 100  # random changes of two or three parameters around each centre


def candidates(rows: Rows, axes: tuple[Axis, ...], wanted: Indices, rng: np.random.Generator) -> Indices:
    """Ascending row numbers. `wanted` rows, best first, are among them, and those near the first of them."""
    if len(rows) <= MAX_CANDIDATES:
        return np.arange(len(rows))
    near = _neighbours(rows, axes, wanted[:CENTRES], rng)
    anywhere = rng.integers(0, len(rows), MAX_CANDIDATES - min(len(near) + len(wanted), MAX_CANDIDATES // 2))
    return np.unique(np.concatenate([wanted, near[: MAX_CANDIDATES // 2], anywhere]))


def _neighbours(rows: Rows, axes: tuple[Axis, ...], centres: Indices, rng: np.random.Generator) -> Indices:
    """Valid rows that differ from a centre in one parameter, and some that differ in two or three."""
    changed = []
    for centre in rows[centres]:
        for axis in axes:
            copies = np.repeat(centre[None], len(axis.places), axis=0)
            copies[:, axis.column] = np.arange(len(axis.places))
            changed.append(copies)
        jumps = np.repeat(centre[None], JUMPS, axis=0)
        for _ in range(3):  # the third change often undoes or repeats an earlier one
            chosen = rng.integers(0, len(axes), JUMPS)
            for number, axis in enumerate(axes):
                moved = np.flatnonzero(chosen == number)
                jumps[moved, axis.column] = rng.integers(0, len(axis.places), len(moved))
        changed.append(jumps)
    if not changed:
        return np.empty(0, dtype=np.intp)
    found = find_rows(rows, np.concatenate(changed))
    return np.unique(found[found >= 0])
