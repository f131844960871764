"""A script's list of kernel arguments as arguments of a space, and back."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.launch_plan import C_TYPES
from autotune.core.text import bare_code
from autotune.errors import InputError
from autotune.space.arguments import INPUTS, Fill, FilledArgument


@dataclass(frozen=True)
class KernelArguments:
    """The arguments of a kernel: `values` as they were given, `arrays` as the kernel sees them, by name."""

    values: tuple[Any, ...]
    specs: tuple[FilledArgument, ...]
    arrays: Mapping[str, NDArray[Any]]

    def outputs(self, found: Mapping[str, NDArray[Any]]) -> list[Any]:
        """The list again, with what arrays hold after a run in their place."""
        listed: list[Any] = []
        for spec, value in zip(self.specs, self.values, strict=False):
            if spec.name not in self.arrays:
                listed.append(value)
                continue
            host = _on_host(value)
            listed.append(found[spec.name].reshape(-1).view(host.dtype).reshape(host.shape))
        return listed


def read_arguments(
    given: Sequence[Any], kernel: str, source: str, constants: Mapping[str, Any] | None = None
) -> KernelArguments:
    """Describe arguments by their values; raises InputError for one that no kernel can have.

    Args:
        given: Arrays of numpy, cupy or torch, and scalars of numpy.
        kernel: The kernel's name.
        source: Where its parameters are looked for: an array that is `const` there is an input only.
        constants: Arrays in constant memory, by the names that the source gives them.
    """
    if isinstance(given, np.ndarray) or not isinstance(given, Sequence):
        raise InputError(f"arguments: expected a list of arrays and scalars, found {type(given).__name__}")
    if any(type(value).__module__ == "kernel_tuner.accuracy" for value in given):
        raise InputError(
            "arguments: Tunable is not supported; make the element type a parameter of the source"
        )
    is_const = _const_parameters(kernel, source, len(given))
    specs: list[FilledArgument] = []
    arrays: dict[str, NDArray[Any]] = {}
    for place, value in enumerate(given):
        name = f"argument_{place}"
        if isinstance(value, np.generic) and value.dtype.name in C_TYPES:
            specs.append(FilledArgument(name, value.dtype.name, "scalar", value=_scalar(value, place)))
            continue
        arrays[name] = array = _viewed(_on_host(value), place)
        shape = tuple(str(extent) for extent in array.shape)
        role = "in" if is_const[place] else "inout"
        specs.append(FilledArgument(name, array.dtype.name, role, shape, fill=Fill(INPUTS, ())))
    for symbol, value in (constants or {}).items():
        name = f"constant_{len(arrays)}"
        arrays[name] = array = _viewed(np.atleast_1d(np.asarray(value)), len(specs))
        shape = tuple(str(extent) for extent in array.shape)
        specs.append(
            FilledArgument(name, array.dtype.name, "in", shape, symbol=symbol, fill=Fill(INPUTS, ()))
        )
    return KernelArguments(tuple(given), tuple(specs), arrays)


def expected_results(answer: Sequence[Any] | None, arguments: KernelArguments) -> dict[str, NDArray[Any]]:
    """The arrays of an `answer` by name; raises InputError where it does not fit the arguments."""
    if answer is None:
        return {}
    if len(answer) != len(arguments.values):
        raise InputError(
            f"answer: {len(answer)} elements for {len(arguments.values)} arguments; None means input"
        )
    found = {}
    for spec, value in zip(arguments.specs, answer, strict=False):
        if value is None:
            continue
        if spec.name not in arguments.arrays:
            raise InputError(f"answer: {spec.name} is a scalar; expected None")
        array = arguments.arrays[spec.name]
        wanted = _viewed(_on_host(value), 0) if isinstance(value, np.ndarray) else np.asarray(value)
        if wanted.size != array.size:
            raise InputError(f"answer: {wanted.size} elements for {spec.name}, which has {array.size}")
        found[spec.name] = wanted.astype(array.dtype)
    return found


def _on_host(value: Any) -> NDArray[Any]:
    """An array of numpy, cupy or torch in the host's memory; raises InputError for anything else."""
    for method in ("detach", "cpu", "numpy"):  # of torch
        if hasattr(value, method) and not isinstance(value, np.ndarray):
            value = getattr(value, method)()
    if hasattr(value, "get") and hasattr(value, "__cuda_array_interface__"):
        value = value.get()
    if not isinstance(value, np.ndarray):
        raise InputError(
            f"arguments: {type(value).__name__}: expected an array, or a scalar such as numpy.int32(1)"
        )
    return value


def _viewed(array: NDArray[Any], place: int) -> NDArray[Any]:
    """An array with elements that a space can describe: complex ones as pairs, others as bytes."""
    if array.dtype.hasobject:
        raise InputError(f"arguments: number {place} holds Python objects; expected numbers")
    if array.dtype.name in C_TYPES:
        return array
    flat = np.ascontiguousarray(array).reshape(-1)
    if array.dtype.kind == "c" and flat.real.dtype.name in C_TYPES:
        return flat.view(flat.real.dtype)
    return flat.view(np.uint8)


def _scalar(value: np.generic, place: int) -> str:
    number = value.item()
    if not math.isfinite(number):
        raise InputError(f"arguments: number {place} is {number}; expected a finite number")
    return repr(number)


def _const_parameters(kernel: str, source: str, count: int) -> list[bool]:
    """Which parameters of the kernel's signature are pointers to constants; none where it is not found."""
    match = re.search(rf"\b{re.escape(kernel)}\s*\(([^()]*)\)\s*\{{", bare_code(source))
    parameters = match[1].split(",") if match else []
    if len(parameters) != count:
        return [False] * count
    return [bool(re.search(r"\bconst\b.*\*", one, re.DOTALL)) for one in parameters]
