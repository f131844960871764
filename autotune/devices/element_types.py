"""Element types in numpy. Narrow types come from ml_dtypes; structures are laid out as in C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from autotune.core.c_types import FLOAT8, POINTER, is_complex, struct_fields
from autotune.core.records import ScalarValue

if TYPE_CHECKING:  # importing it takes as long as loading a kernel
    from numpy.typing import NDArray

_NARROW = ("bfloat16", FLOAT8)
NO_ADDRESSES: Mapping[str, int] = {}


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy type of an element type."""
    if name in _NARROW:
        import ml_dtypes  # takes longer to import than a kernel to load

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype
    if name == POINTER:
        return np.dtype(np.uint64)
    fields = struct_fields(name)
    if not fields:
        return np.dtype(name)
    return np.dtype(
        [(field, numpy_dtype(kind), (count,) if count else ()) for field, kind, count in fields], align=True
    )


def array_bytes(dtype: str, shape: Sequence[int]) -> int:
    """The size of an array in bytes."""
    return prod(shape) * numpy_dtype(dtype).itemsize


def is_floating(dtype: np.dtype[Any]) -> bool:
    """True if elements are real floating-point numbers."""
    return dtype.kind == "f" or dtype.name in _NARROW


def scalar_of(name: str, value: ScalarValue, addresses: Mapping[str, int] = NO_ADDRESSES) -> np.generic:
    """A scalar argument in a kernel's form, with the addresses of what it points to, or 0."""
    dtype = numpy_dtype(name)
    if isinstance(value, tuple):
        value = tuple(addresses.get(part, 0) if isinstance(part, str) else part for part in value)
    if is_complex(name) and isinstance(value, tuple):
        return dtype.type(complex(*value))  # type: ignore[no-any-return]
    scalar = np.zeros(1, dtype)  # gaps of structures, too: graphs are told apart by all bytes
    scalar[0] = value
    return scalar[0]  # type: ignore[no-any-return]


def loaded(values: NDArray[Any], name: str) -> NDArray[Any]:
    """An array from a file with its element type, because numpy's files cannot name narrow types."""
    dtype = numpy_dtype(name)
    return values.view(dtype) if values.dtype != dtype and values.dtype.kind == "V" else values


def host_array(value: Any) -> Any:
    """An array of torch or cupy as an array of numpy; any other object unchanged."""
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    is_of_cupy = hasattr(value, "__cuda_array_interface__") and hasattr(value, "get")
    return value.get() if is_of_cupy else value


def plain_dtype(name: str) -> str:
    """The type in which elements are compared: the parts of a complex number, the bytes of a structure."""
    if is_complex(name):
        return "float32" if name == "complex64" else "float64"
    return "uint8" if name == "bool" or struct_fields(name) else name
