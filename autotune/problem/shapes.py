"""Gives drawn inputs a shape on which kernels fail: ties, sorted values, large or close ones.

Each shape is a fill around the fill of the space: ("close", "normal", 0, 1). Bounded fills keep their bounds,
with one exception: "wide" has whole numbers beyond 16 and 24 bits, for the few references that take them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from autotune.core.c_types import C_TYPES, element_bytes
from autotune.core.error_bounds import SMALLEST, UNIT_ROUNDOFF
from autotune.core.fills import RANDOM_FILLS
from autotune.core.records import Value

Fill = tuple[Value, ...]
_Reals = NDArray[np.float64]
_Range = tuple[float, float]

_DEVIATIONS = 4.0  # of a normal fill: few numbers are farther from the mean
_FAR = 32.0  # times the range: exp overflows in float32, and the last bits still say little
_LARGE = 1024.0  # times the range
_FEW = 3
_CLOSE_STEPS = 16
_WIDE = 2**24 + 1
_WIDE_SHARE = 64  # one element in so many is wide


def _few_values(values: _Reals, bounds: _Range, draw: Generator) -> _Reals:
    few = values.reshape(-1)[:_FEW]
    return few[draw.integers(0, few.size, values.shape)]


def _one_large(values: _Reals, bounds: _Range, draw: Generator) -> _Reals:
    found = values.copy()
    places = draw.integers(0, values.shape[1], len(values))
    found[np.arange(len(values)), places] = _LARGE * _extent(bounds)
    return found


def _wide(values: _Reals, bounds: _Range, draw: Generator) -> _Reals:
    found = values.copy().reshape(-1)
    places = draw.permutation(found.size)[: -(-found.size // _WIDE_SHARE)]
    signs = draw.choice([-1, 1], places.size) if bounds[0] < 0 else 1
    found[places] = signs * (_WIDE + draw.integers(0, 256, places.size))
    return found.reshape(values.shape)


_CLOSE = "close"
_Shape = Callable[[_Reals, _Range, Generator], _Reals]
_ANY: dict[str, _Shape] = {
    "constant rows": lambda values, bounds, draw: np.broadcast_to(values[:, :1], values.shape),
    "equal rows": lambda values, bounds, draw: np.broadcast_to(values[:1], values.shape),
    "few values": _few_values,
    "rising": lambda values, bounds, draw: np.sort(values, axis=None).reshape(values.shape),
}
_SIGNS: dict[str, _Shape] = {
    "negative": lambda values, bounds, draw: np.clip(-np.abs(values), *bounds),
    "positive": lambda values, bounds, draw: np.clip(np.abs(values), *bounds),
}
_UNBOUNDED: dict[str, _Shape] = {
    "far above": lambda values, bounds, draw: values + _FAR * _extent(bounds),
    "far below": lambda values, bounds, draw: values - _FAR * _extent(bounds),
    "one large": _one_large,
}
_HALVES: dict[str, _Shape] = {
    "halves between": lambda values, bounds, draw: np.clip(values + 0.5, *bounds),
}
_FUNCTIONS = _ANY | _SIGNS | _UNBOUNDED | _HALVES | {"wide": _wide}
SHAPES = (*_FUNCTIONS, _CLOSE)
WITHIN_FILLS = (*_ANY, *_SIGNS, "halves between", _CLOSE)  # have no value that the fill may not have


def fill_of_shape(name: str, fill: Fill | None, dtype: str, shape: tuple[int, ...]) -> Fill | None:
    """The fill of an array that has a shape of SHAPES; the same one where that means nothing."""
    if (
        fill is None
        or fill[0] not in RANDOM_FILLS
        or not all(isinstance(one, int | float) for one in fill[1:])
    ):
        return fill
    is_real, is_whole = dtype in SMALLEST, dtype in C_TYPES and dtype.startswith(("int", "uint"))
    kind, (low, high) = fill[0], _bounds(fill)
    has = (
        name in ("constant rows", "few values", "rising")
        or (name == "equal rows" and len(shape) > 1)
        or (name in _SIGNS and low < 0 < high)
        # kernels in halves round between their steps: what is far then says nothing of the kernel
        or (name in _UNBOUNDED and is_real and kind == "normal" and dtype in ("float32", "float64"))
        or (name == _CLOSE and is_real and kind != "integers")
        or (name == "halves between" and is_real and kind == "integers" and low < high)
        or (name == "wide" and is_whole and kind == "integers" and element_bytes(dtype) >= 4)
    )
    return (name, *fill) if has and (is_real or is_whole) else fill


def shaped(
    name: str, values: NDArray[np.generic], fill: Fill, dtype: str, draw: Generator
) -> NDArray[np.generic]:
    """Give drawn values, of at least one dimension, a shape of SHAPES; `fill` is what they were drawn for."""
    if not values.size:
        return values
    reals = values.astype(np.float64).reshape(-1, values.shape[-1] if values.ndim > 1 else values.size)
    bounds = _bounds(fill)
    shape = partial(_close, dtype) if name == _CLOSE else _FUNCTIONS[name]
    return shape(reals, bounds, draw).astype(values.dtype).reshape(values.shape)


def _close(dtype: str, values: _Reals, bounds: _Range, draw: Generator) -> _Reals:
    """Values that only differ in their lower bits, by a few more than the last."""
    step = min(2**-6, 2**4 * UNIT_ROUNDOFF[dtype])
    found = max(bounds, key=abs) * (1 - step * draw.integers(0, _CLOSE_STEPS, values.shape))
    return np.clip(found, *bounds)


def _bounds(fill: Fill) -> _Range:
    kind, first, second = fill[0], float(fill[1]), float(fill[2])
    if kind == "normal":
        return first - _DEVIATIONS * abs(second), first + _DEVIATIONS * abs(second)
    return first, second


def _extent(bounds: _Range) -> float:
    return max(map(abs, bounds)) or 1.0
