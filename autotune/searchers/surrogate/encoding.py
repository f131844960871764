"""A space as points on axes: numbers lie on an axis by their size, other values are categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.core.records import Value
from autotune.space import ValidSpace

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Positions = NDArray[np.intp]  # (rows, axes): position of each value in its parameter's list


@dataclass(frozen=True, eq=False)
class Axis:
    """One parameter with several values: their coordinates from 0 to 1, and a matrix of their distances.

    Names, booleans and pairs are categories, all at distance 1; their coordinates mean nothing.
    """

    column: int
    coordinates: Floats
    distances: Floats
    is_ordinal: bool


class Encoding:
    """The positions of a space's configurations on the axes of its parameters."""

    def __init__(self, space: ValidSpace) -> None:
        self.space = space
        self.axes = tuple(  # of the parameters with at least two values, in order
            _axis(column, parameter.values)
            for column, parameter in enumerate(space.parameters)
            if len(parameter.values) > 1
        )
        self.parameter_axes = self.axes  # a pool of problems has further axes
        self._columns = [axis.column for axis in self.axes]

    def positions(self, rows: Indices | slice) -> Positions:
        """Positions of some rows of the space, as native integers."""
        return np.ascontiguousarray(self.space.rows[rows][:, self._columns], dtype=np.intp)


def _axis(column: int, values: Sequence[Value]) -> Axis:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(values) or len(values) == 2:
        coordinates = np.linspace(0.0, 1.0, len(values))
        return Axis(column, coordinates, 1.0 - np.eye(len(values)), is_ordinal=False)
    raw = np.array(numbers, dtype=float)
    # block sizes, tiles and unrolling act by factors; with zeros or negative values only the order counts
    scale = np.log(raw) if raw.min() > 0 else np.argsort(np.argsort(raw)).astype(float)
    coordinates = (scale - scale.min()) / np.ptp(scale)
    return Axis(column, coordinates, np.abs(coordinates[:, None] - coordinates), is_ordinal=True)
