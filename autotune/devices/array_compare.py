"""The rule by which two arrays are equal, in numpy and as a CUDA kernel; a kernel that gathers elements.

Elements agree if they are equal or within the tolerance. NaN differs from everything; equal infinities agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.c_types import C_TYPES, element_bytes
from autotune.devices.element_types import is_floating, numpy_dtype, plain_dtype

Difference = tuple[int, int]  # index of the first element that differs, and how many do


@dataclass(frozen=True)
class Tolerance:
    """How far an element may be from what is expected: atol + rtol * |expected| + factor * its magnitude.

    The magnitude is what the reference computes of absolute values, beside the result.
    """

    rtol: float = 0.0
    atol: float = 0.0
    factor: float = 0.0

    def __str__(self) -> str:
        of_magnitude = f" and {self.factor:.3g} of the sum of magnitudes" if self.factor else ""
        return f"rtol={self.rtol:g}, atol={self.atol:g}{of_magnitude}"


EXACT = Tolerance()


@dataclass(frozen=True)
class ArrayComparison:
    """Two arrays in device memory to compare.

    The first and last `ends` elements are guard zones, compared bit by bit. If `inside` is false, only these
    are compared. An array of structures is compared as bytes, of which `struct` says what they mean.
    `magnitude` has a float32 for each element that is no guard; it is read where the tolerance has a factor.
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
        found, wanted = (array[inner].view(dtype) for array in (actual, expected))
        differs[inner] = False
        differs[inner][:: dtype.itemsize] = differing(found, wanted, comparison.tolerance)
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
    """Which elements differ by more than the tolerance, in any field or part of a complex number."""
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
    """Which elements differ where NaN may be expected: for real numbers, any NaN is right there."""
    wrong = differing(actual, expected, tolerance, magnitude)
    if is_floating(actual.dtype):
        wrong &= ~(np.isnan(actual) & np.isnan(expected))
    return wrong


def cuda_source(item_bytes: int) -> str:
    """The same rule as a CUDA kernel `compare` for elements of this size.

    Its parameter `kind` is the type's index in KINDS, `special` is `special_bits` of the type, `gap` is the
    number of elements to skip after the first `ends`, and `result` is what `difference_of` reads. Elements
    that are equal bit by bit, nearly all, take the short way. Each thread loads four elements at a time, to
    use the memory's full bandwidth.
    """
    names = [name for name in KINDS if element_bytes(name) == item_bytes and name not in _NARROW]
    cases = [_CASE.format(kind=KINDS.index(name), type=C_TYPES[name]) for name in names]
    return f"typedef {C_TYPES[f'uint{8 * item_bytes}']} Bits;\n" + _CUDA.replace(
        "CASES", "".join(cases)
    ).replace("BFLOAT16", str(KINDS.index("bfloat16")))


def gather_source(word_bytes: int) -> str:
    """A CUDA kernel `gather` that copies the elements at `places` in an array, which have some words each.

    It is apart from the comparison, which every search waits for, and few searches gather.
    """
    return _GATHER.replace("WORD", C_TYPES[f"uint{8 * word_bytes}"])


def special_bits(dtype: str) -> int:
    """The exponent's bits of a floating-point type, all set in infinities and NaN; 0 for an integer."""
    return {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF0000000000000}.get(
        dtype, 0
    )


KINDS = tuple(name for name in C_TYPES if plain_dtype(name) == name)
_NARROW = ("float16", "bfloat16")  # CUDA C++ has them in headers of its toolkit only
_CASE = """
    case {kind}: {{
        const {type} x = ((const {type} *)actual)[i], y = ((const {type} *)expected)[i];
        same = x == y; found = (double)x; wanted = (double)y;
        break;
    }}"""
_CUDA = """
typedef unsigned long long Count;

__device__ double narrow_at(const void *array, Count i, int kind)
{
    const unsigned short bits = ((const unsigned short *)array)[i];
    float wide;
    if (kind == BFLOAT16) wide = __uint_as_float((unsigned)bits << 16);
    else asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
    return wide;
}

__device__ __noinline__ void judge(const void *actual, const void *expected, Count i, int kind,
                                   double rtol, double atol, const float *magnitude, double factor,
                                   Count inside, Count *result)
{
    double found, wanted;
    bool same;
    switch (kind) {CASES
    default:
        found = narrow_at(actual, i, kind); wanted = narrow_at(expected, i, kind); same = found == wanted;
    }
    const double distance = fabs(found - wanted);
    const double allowed = atol + rtol * fabs(wanted) + (factor > 0 ? factor * magnitude[inside] : 0);
    if (same || (allowed > 0 && distance <= allowed && isfinite(distance))) return;
    atomicMin(result, i);
    atomicAdd(result + 1, 1ull);
}

extern "C" __global__ void compare(const Bits *actual, const Bits *expected, Count count, Count ends,
                                   Count gap, Count special, int kind, double rtol, double atol,
                                   const float *magnitude, double factor, Count *result)
{
    const Count stride = (Count)gridDim.x * blockDim.x, visited = count - gap;
    const Bits mask = (Bits)special;
    for (Count first = (Count)blockIdx.x * blockDim.x + threadIdx.x; first < visited; first += 4 * stride) {
        Bits found[4], wanted[4];
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            const Count i = first + k * stride < visited ? first + k * stride : first;
            found[k] = actual[i + (i < ends ? 0 : gap)];
            wanted[k] = expected[i + (i < ends ? 0 : gap)];
        }
        unsigned unequal = 0, doubtful = 0;  // bits: an index into `found` below would put it in memory
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            unequal |= (found[k] != wanted[k]) << k;
            doubtful |= (found[k] != wanted[k] || (mask && (found[k] & mask) == mask)) << k;
        }
        for (int k = 0; doubtful >> k; ++k) {
            const Count i = first + k * stride;
            if (!(doubtful >> k & 1) || i >= visited) continue;
            const bool guard = i < ends || i >= visited - ends;
            if (guard && !(unequal >> k & 1)) continue;  // NaN, as it should be
            const Count at = i + (i < ends ? 0 : gap);
            judge(actual, expected, at, kind, guard ? 0 : rtol, guard ? 0 : atol, magnitude,
                  guard ? 0 : factor, at - ends, result);
        }
    }
}
"""


_GATHER = """
typedef unsigned long long Count;

extern "C" __global__ void gather(const WORD *array, const Count *places, Count words, Count count,
                                  WORD *found)
{
    const Count i = (Count)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        for (Count word = 0; word < words; ++word)
            found[i * words + word] = array[places[i] * words + word];
}
"""


def difference_of(first: int, differing: int) -> Difference | None:
    """Read the kernel's result: the smallest index, and the count minus one; both start with all bits set."""
    count = (differing + 1) % 2**64
    return (first, count) if count else None
