"""The rule for the equality of two arrays, and its implementation in numpy.

Elements agree if they are equal or within the tolerance. NaN differs from everything; equal infinities agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.devices.element_types import is_floating, numpy_dtype

Difference = tuple[int, int]  # index of the first differing element, and the number of such elements


@dataclass(frozen=True)
class Tolerance:
    """The allowed error of an element: atol + rtol * |expected| + factor * magnitude.

    The magnitude is the reference's result for absolute values.
    """

    rtol: float = 0.0
    atol: float = 0.0
    factor: float = 0.0

    def times(self, share: float) -> Tolerance:
        """A share of this tolerance."""
        return Tolerance(self.rtol * share, self.atol * share, self.factor * share)

    def __str__(self) -> str:
        of_magnitude = f" and {self.factor:.3g} of the sum of magnitudes" if self.factor else ""
        return f"rtol={self.rtol:g}, atol={self.atol:g}{of_magnitude}"


EXACT = Tolerance()


@dataclass(frozen=True)
class ArrayComparison:
    """Two arrays in device memory to compare.

    The first and last `ends` elements are guard zones, compared bit by bit. If `inside` is false, only the
    guard zones are compared. An array of structures is compared as bytes; `struct` is then its type.
    `magnitude` has a float32 for each element outside the guard zones; it is read if the tolerance has a
    factor.
    """

    actual: Any
    expected: Any
    dtype: str
    count: int
    tolerance: Tolerance = EXACT
    ends: int = 0
    inside: bool = True
    struct: str = ""
    magnitude: Any = None


def compared_on_host(
    actual: NDArray[Any],
    expected: NDArray[Any],
    comparison: ArrayComparison,
    magnitude: NDArray[Any] | None = None,
) -> Difference | None:
    """Carry out a comparison whose arrays were copied to the host."""
    bits = f"uint{8 * actual.itemsize}"
    differs = actual.view(bits) != expected.view(bits)
    inner = slice(comparison.ends, actual.size - comparison.ends)
    if comparison.inside and comparison.struct:
        dtype = numpy_dtype(comparison.struct)
        structs, expected_structs = (array[inner].view(dtype) for array in (actual, expected))
        differs[inner] = False
        differs[inner][:: dtype.itemsize] = differing(structs, expected_structs, comparison.tolerance)
    elif comparison.inside:
        differs[inner] = differing(actual[inner], expected[inner], comparison.tolerance, magnitude)
    else:
        differs[inner] = False
    count = int(np.count_nonzero(differs))
    return (int(np.argmax(differs)), count) if count else None


def differing(
    actual: NDArray[Any],
    expected: NDArray[Any],
    tolerance: Tolerance,
    magnitude: NDArray[Any] | None = None,
) -> NDArray[np.bool_]:
    """A mask of elements that differ by more than the tolerance, in any field or complex part."""
    if actual.dtype.names or actual.dtype.kind == "c":
        parts = [(actual[name], expected[name]) for name in actual.dtype.names or ()]
        parts = parts or [(actual.real, expected.real), (actual.imag, expected.imag)]
        wrong = [differing(*pair, tolerance).reshape(len(actual), -1).any(axis=1) for pair in parts]
        return np.asarray(np.any(wrong, axis=0))
    if tolerance == EXACT:
        return np.asarray(actual != expected)
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        distance = np.abs(actual - expected)
        allowed = tolerance.atol + tolerance.rtol * np.abs(expected)
        if tolerance.factor and magnitude is not None:
            allowed = allowed + tolerance.factor * magnitude.astype(np.float64)
        near = np.isfinite(distance) & (distance <= allowed)
    return np.asarray(~(near | (actual == expected)))


def unlike(
    actual: NDArray[Any],
    expected: NDArray[Any],
    tolerance: Tolerance,
    magnitude: NDArray[Any] | None = None,
) -> NDArray[np.bool_]:
    """A mask of differing elements, where real numbers also agree if both are NaN."""
    wrong = differing(actual, expected, tolerance, magnitude)
    if is_floating(actual.dtype):
        wrong &= ~(np.isnan(actual) & np.isnan(expected))
    return wrong


def special_bits(dtype: str) -> int:
    """The exponent's bits of a floating-point type, all set in infinities and NaN; 0 for an integer."""
    return {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF0000000000000}.get(
        dtype, 0
    )
