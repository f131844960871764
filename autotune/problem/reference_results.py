"""Converts what a reference returns to the arrays of a workload, or says why it does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.text import hint
from autotune.devices.base import Indices
from autotune.devices.element_types import host_array, is_floating, numpy_dtype
from autotune.errors import BrokenReference
from autotune.problem.data_sets import has_special_values
from autotune.problem.workload import Array

_PART = 2**20  # elements that are looked at at once


def converted_results(
    results: Any, arrays: tuple[Array, ...], indices: Mapping[str, Indices] | None
) -> dict[str, NDArray[Any]]:
    """A reference's results at `indices` (None: everywhere), flat and of the arrays' types.

    Raises BrokenReference, whose message goes on after "reference() returned".
    """
    known = {array.name: array for array in arrays if array.role in ("out", "inout")}
    needed = [array.name for array in known.values() if array.role == "out"] or list(known)
    if not isinstance(results, Mapping):
        kind = "None, as a function without `return` does" if results is None else type(results).__name__
        wanted = ", ".join(f'"{name}": ...' for name in needed)
        raise BrokenReference(f"{kind}; end it with `return {{{wanted}}}`, a dict of arrays")
    for name in results:
        if name not in known:
            raise BrokenReference(f"{name!r}, which is no out or inout argument{hint(str(name), known)}")
    for array in known.values():
        if array.role == "out" and array.name not in results:
            names = ", ".join(map(str, results)) or "an empty dict"
            raise BrokenReference(f"nothing for the out argument {array.name}, but {names}")
    hosted = {name: _on_host(result, name) for name, result in results.items()}
    for name, result in hosted.items():
        if indices is None:
            _require_shape(result, known[name])
        elif result.size != (count := len(indices[name])):
            raise BrokenReference(
                f"an array of shape {list(result.shape)} for {name}; expected {count:,} elements, those at "
                f"the flat indices in indices[{name!r}]"
            )
    may_be_nan = has_special_values(arrays)
    return {name: _as_declared(result, known[name], may_be_nan=may_be_nan) for name, result in hosted.items()}


def _on_host(result: Any, name: str) -> NDArray[Any]:
    """A numpy array from an array of numpy, cupy or torch, or from a number or a list.

    Raises BrokenReference, which names the argument, for lists of different lengths.
    """
    try:
        return np.asarray(host_array(result))
    except ValueError:
        raise BrokenReference(f"lists of different lengths for {name}; expected an array") from None


def _require_shape(result: NDArray[Any], array: Array) -> None:
    """Raise BrokenReference for a result that neither has the array's shape nor is flat."""
    declared, returned = list(array.shape), list(result.shape)
    inner = [[length for length in shape if length != 1] for shape in (returned, declared)]
    is_turned = len(inner[0]) == len(inner[1]) and inner[0] != inner[1]
    if result.size != array.count or is_turned:
        raise BrokenReference(
            f"an array of shape {returned} for {array.name}; return one of shape {declared}, "
            "as the space file declares, or correct the shape there"
        )


def _as_declared(result: NDArray[Any], array: Array, *, may_be_nan: bool) -> NDArray[Any]:
    """Flatten and convert a reference's result to the array's type, or raise BrokenReference.

    If `may_be_nan`, real numbers may be NaN.
    """
    dtype = numpy_dtype(array.dtype)
    if dtype.names:
        fits = result.dtype.names == dtype.names
    else:
        fits = is_floating(result.dtype) or result.dtype.kind in ("biuc" if dtype.kind == "c" else "biu")
    if not fits:
        raise BrokenReference(f"{result.dtype} elements for {array.name}; expected numbers: {array.dtype}")
    flat = result.reshape(-1)
    is_right = may_be_nan and is_floating(dtype)
    if not is_right and flat.dtype.kind not in "biu" and (odd := _nan_indices(flat)).size:
        raise BrokenReference(
            f"NaN in {odd.size:,} of {flat.size:,} elements of {array.name}, the first at flat index "
            f"{odd[0]}; NaN equals nothing, so no configuration could be right"
        )
    with np.errstate(invalid="ignore", over="ignore"):
        typed = flat.astype(dtype, copy=False)  # as large as the output: a copy takes a second for a GiB
    if dtype.kind in "biu" and typed is not flat and (changed := np.flatnonzero(typed != flat)).size:
        raise BrokenReference(
            f"{flat[changed[0]]} for {array.name}[{changed[0]}], which {array.dtype} cannot hold; "
            f"return whole numbers, or change the dtype of {array.name} in the space file"
        )
    return np.ascontiguousarray(typed)


def _nan_indices(values: NDArray[Any]) -> Indices:
    """The indices of the elements that are NaN, part by part: a mask of all would take long to allocate."""
    starts = range(0, max(values.size, 1), _PART)
    return np.concatenate([start + np.flatnonzero(_nans(values[start : start + _PART])) for start in starts])


def _nans(values: NDArray[Any]) -> NDArray[np.bool_]:
    """A mask of the elements that are NaN, or have a field that is."""
    if not values.dtype.names:
        return np.asarray(np.isnan(values))
    fields = [_nans(values[name]).reshape(len(values), -1).any(axis=1) for name in values.dtype.names]
    return np.asarray(np.any(fields, axis=0))
