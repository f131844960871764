"""Gives drawn inputs a shape on which kernels fail: ties, sorted values, large or close ones.

Each shape is a fill around the fill of the space: ("close", "normal", 0, 1). Bounded fills keep their bounds,
with two exceptions: "wide" has whole numbers beyond 16 and 24 bits, and "limits" the largest and smallest
ones of their type, for the few references that take them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from autotune.core.c_types import C_TYPES, element_bytes
from autotune.core.error_bounds import SMALLEST, UNIT_ROUNDOFF
from autotune.core.fills import RANDOM_FILLS
from autotune.core.records import Value

Fill = tuple[Value, ...]
_Reals = NDArray[np.float64]

_DEVIATIONS = 4.0  # bounds of a normal fill, in deviations: few numbers are farther from the mean
_FAR = 32.0  # far values lie so many extents away: exp overflows in float32, and last bits still say little
_LARGE = 1024.0  # a large value is so many times the extent of the others
_FEW = 3
_CLOSE_STEPS = 16
_WIDE = 2**24 + 1
_WIDE_SHARE = 64  # one element in so many is wide, or near a limit
_NEAR = 8  # values near a limit are one of so many numbers next to it
_EXACT_BITS = 53  # of a float64: values are drawn in that type


class _Drawn(NamedTuple):
    """An array of numbers that a space draws."""

    kind: str  # of the fill
    low: float
    high: float
    dtype: str
    dimensions: int

    @classmethod
    def of(cls, fill: Fill, dtype: str, dimensions: int) -> _Drawn:
        """The array of a fill; a normal one has bounds that few numbers leave."""
        kind, first, second = str(fill[0]), float(fill[1]), float(fill[2])
        if kind == "normal":
            first, second = first - _DEVIATIONS * abs(second), first + _DEVIATIONS * abs(second)
        return cls(kind, first, second, dtype, dimensions)

    @property
    def extent(self) -> float:
        """The largest magnitude; 1 if all are 0."""
        return max(abs(self.low), abs(self.high)) or 1.0

    def clipped(self, values: NDArray[Any]) -> _Reals:
        """Values within the bounds."""
        clipped: _Reals = np.clip(values, self.low, self.high)
        return clipped


class _Shape(NamedTuple):
    """A shape in words, how drawn values get it, and the arrays for which it means something."""

    words: str
    give: Callable[[_Reals, _Drawn, Generator], _Reals]
    suits: Callable[[_Drawn], bool]
    is_within: bool = True  # has no value that the fill may not have


def _few_values(values: _Reals, drawn: _Drawn, draw: Generator) -> _Reals:
    few = values.reshape(-1)[:_FEW]
    return few[draw.integers(0, few.size, values.shape)]


def _far(values: _Reals, drawn: _Drawn, sign: int) -> _Reals:
    """Values far above or below the usual ones; within bounds, in a small part of them at one end."""
    if drawn.kind == "normal":
        return values + sign * _FAR * drawn.extent
    end = drawn.high if sign > 0 else drawn.low
    return drawn.clipped(end + (values - end) / _FAR)


def _one_large(values: _Reals, drawn: _Drawn, draw: Generator) -> _Reals:
    """Rows with one large value; within bounds, the others are next to the smallest magnitude."""
    shaped, large = values.copy(), _LARGE * drawn.extent
    if drawn.kind != "normal":
        small = drawn.clipped(np.zeros(()))
        shaped, large = drawn.clipped(small + (values - small) / _LARGE), max(drawn.low, drawn.high, key=abs)
    places = draw.integers(0, values.shape[1], len(values))
    shaped[np.arange(len(values)), places] = large
    return shaped


def _wide(values: _Reals, drawn: _Drawn, draw: Generator) -> _Reals:
    return _in_some(values, drawn, draw, lambda count: _WIDE + draw.integers(0, 256, count))


def _near_limits(values: _Reals, drawn: _Drawn, draw: Generator) -> _Reals:
    bits = 8 * element_bytes(drawn.dtype) - drawn.dtype.startswith("int")
    step = 2.0 ** max(0, bits - _EXACT_BITS)
    return _in_some(
        values, drawn, draw, lambda count: 2.0**bits - step * (1 + draw.integers(0, _NEAR, count))
    )


def _in_some(
    values: _Reals, drawn: _Drawn, draw: Generator, magnitudes: Callable[[int], NDArray[Any]]
) -> _Reals:
    """The values with some magnitudes in random places, some negative if the bounds have such numbers."""
    shaped = values.copy().reshape(-1)
    places = draw.permutation(shaped.size)[: -(-shaped.size // _WIDE_SHARE)]
    signs = draw.choice([-1, 1], places.size) if drawn.low < 0 else 1
    shaped[places] = signs * magnitudes(places.size)
    return shaped.reshape(values.shape)


def _close(values: _Reals, drawn: _Drawn, draw: Generator) -> _Reals:
    """Values that only differ in their lower bits, by a few more than the last."""
    step = min(2**-6, 2**4 * UNIT_ROUNDOFF[drawn.dtype])
    middle = max(drawn.low, drawn.high, key=abs)
    return drawn.clipped(middle * (1 - step * draw.integers(0, _CLOSE_STEPS, values.shape)))


def _has_signs(drawn: _Drawn) -> bool:
    return drawn.low < 0 < drawn.high


def _has_far(drawn: _Drawn) -> bool:
    # kernels in half precision round between steps, so far values say nothing about them
    return drawn.kind != "integers" and drawn.dtype in ("float32", "float64")


def _is_continuous(drawn: _Drawn) -> bool:
    return drawn.dtype in SMALLEST and drawn.kind != "integers"


def _has_halves(drawn: _Drawn) -> bool:
    return drawn.dtype in SMALLEST and drawn.kind == "integers" and drawn.low < drawn.high


def _is_drawn_whole(drawn: _Drawn) -> bool:
    return _is_whole(drawn.dtype) and drawn.kind == "integers"


def _holds_wide(drawn: _Drawn) -> bool:
    return _is_drawn_whole(drawn) and element_bytes(drawn.dtype) >= 4


_SHAPES = {
    "constant rows": _Shape(
        "one value in each row",
        lambda values, drawn, draw: np.broadcast_to(values[:, :1], values.shape),
        lambda drawn: True,
    ),
    "equal rows": _Shape(
        "all rows the same",
        lambda values, drawn, draw: np.broadcast_to(values[:1], values.shape),
        lambda drawn: drawn.dimensions > 1,
    ),
    "few values": _Shape("three values", _few_values, lambda drawn: True),
    "rising": _Shape(
        "sorted",
        lambda values, drawn, draw: np.sort(values, axis=None).reshape(values.shape),
        lambda drawn: True,
    ),
    "negative": _Shape(
        "none above 0", lambda values, drawn, draw: drawn.clipped(-np.abs(values)), _has_signs
    ),
    "positive": _Shape("none below 0", lambda values, drawn, draw: drawn.clipped(np.abs(values)), _has_signs),
    "far above": _Shape(
        "far above the mean", lambda values, drawn, draw: _far(values, drawn, 1), _has_far, is_within=False
    ),
    "far below": _Shape(
        "far below the mean", lambda values, drawn, draw: _far(values, drawn, -1), _has_far, is_within=False
    ),
    "one large": _Shape("one far larger than all others", _one_large, _has_far, is_within=False),
    "halves between": _Shape(
        "a half more than drawn", lambda values, drawn, draw: drawn.clipped(values + 0.5), _has_halves
    ),
    "wide": _Shape("some beyond 2^24", _wide, _holds_wide, is_within=False),
    "close": _Shape("apart by a few of the last bits", _close, _is_continuous),
    "limits": _Shape("near the limits of the type", _near_limits, _is_drawn_whole, is_within=False),
}
SHAPES = {name: shape.words for name, shape in _SHAPES.items()}
BEYOND_FILLS = tuple(name for name, shape in _SHAPES.items() if not shape.is_within)


def fill_of_shape(name: str, fill: Fill | None, dtype: str, shape: tuple[int, ...]) -> Fill | None:
    """The fill of an array that has a shape of SHAPES; the same one where that means nothing."""
    if fill is None or fill[0] not in RANDOM_FILLS:
        return fill
    if not all(isinstance(number, int | float) for number in fill[1:]):
        return fill
    is_number = dtype in SMALLEST or _is_whole(dtype)
    return (name, *fill) if is_number and _SHAPES[name].suits(_Drawn.of(fill, dtype, len(shape))) else fill


def shaped(
    name: str, values: NDArray[np.generic], fill: Fill, dtype: str, draw: Generator
) -> NDArray[np.generic]:
    """Give drawn values, of at least one dimension, a shape of SHAPES; `fill` is what they were drawn for."""
    if not values.size:
        return values
    reals = values.astype(np.float64).reshape(-1, values.shape[-1] if values.ndim > 1 else values.size)
    given = _SHAPES[name].give(reals, _Drawn.of(fill, dtype, values.ndim), draw)
    return given.astype(values.dtype).reshape(values.shape)


def _is_whole(dtype: str) -> bool:
    return dtype in C_TYPES and dtype.startswith(("int", "uint"))
