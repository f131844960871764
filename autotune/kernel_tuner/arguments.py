"""A script's list of kernel arguments as arguments of a space, and back."""

from __future__ import annotations

import cmath
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernel_tuner.accuracy import Tunable
from numpy.typing import NDArray

from autotune.core.c_types import C_TYPES
from autotune.core.text import bare_code
from autotune.errors import InputError
from autotune.kernel_tuner.parameters import Parameters, Params
from autotune.space.arguments import INPUTS, Fill, FilledArgument


@dataclass(frozen=True)
class KernelArguments:
    """The arguments of a kernel.

    Args:
        values: As they were given.
        alternatives: For each of them the values that a configuration may choose from, by their names in the
            space: one, or several of a Tunable.
        specs: All of these, and the constants, as the space declares them.
        arrays: The arrays as the kernel sees them, by name.
        passed: Every list of names that some configuration passes to the kernel.
    """

    values: tuple[Any, ...]
    alternatives: tuple[Mapping[str, Any], ...]
    specs: tuple[FilledArgument, ...]
    arrays: Mapping[str, NDArray[Any]]
    passed: tuple[tuple[str, ...], ...]

    def names(self, params: Params) -> tuple[str, ...]:
        """What a configuration passes to the kernel."""
        return tuple(map(_chosen, self.values, self.alternatives, itertools.repeat(params)))

    def outputs(self, found: Mapping[str, NDArray[Any]], params: Params) -> list[Any]:
        """The list again, with what arrays hold after a run in their place; None for those not found."""
        listed: list[Any] = []
        for name, alternatives in zip(self.names(params), self.alternatives, strict=True):
            value = alternatives[name]
            if name in self.arrays:
                host = _on_host(value)
                back = found[name].reshape(-1).view(host.dtype).reshape(host.shape) if name in found else None
                listed.append(back)
            else:
                listed.append(value)
        return listed


def read_arguments(
    given: Sequence[Any],
    kernel: str,
    source: str,
    constants: Mapping[str, Any] | None = None,
    parameters: Parameters | None = None,
) -> KernelArguments:
    """Describe arguments by their values; raises InputError for one that no kernel can have.

    Args:
        given: Arrays of numpy, cupy or torch, scalars of numpy, and Tunables with several of these.
        kernel: The kernel's name.
        source: Where its parameters are looked for: an array that is `const` there is an input only.
        constants: Arrays in constant memory, by the names that the source gives them.
        parameters: What Tunables choose by.
    """
    if isinstance(given, np.ndarray) or not isinstance(given, Sequence):
        raise InputError(f"arguments: expected a list of arrays and scalars, found {type(given).__name__}")
    is_const = _const_parameters(kernel.partition("<")[0], source, len(given))
    alternatives: list[dict[str, Any]] = []
    specs: list[FilledArgument] = []
    arrays: dict[str, NDArray[Any]] = {}
    for place, value in enumerate(given):
        leaves = list(_leaves(value))
        names = [
            f"argument_{place}" + (f"_{number}" if len(leaves) > 1 else "") for number in range(len(leaves))
        ]
        alternatives.append(dict(zip(names, leaves, strict=True)))
        for name, leaf in alternatives[-1].items():
            if isinstance(leaf, np.generic) and leaf.dtype.name in C_TYPES:
                specs.append(FilledArgument(name, leaf.dtype.name, "scalar", value=_scalar(leaf, place)))
                continue
            arrays[name] = array = _viewed(_on_host(leaf), place)
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
    known = KernelArguments(tuple(given), tuple(alternatives), tuple(specs), arrays, ())
    choices = {known.names(params): None for params in _relevant(given, parameters)}
    return KernelArguments(tuple(given), tuple(alternatives), tuple(specs), arrays, tuple(choices))


def expected_results(answer: Sequence[Any] | None, arguments: KernelArguments) -> dict[str, NDArray[Any]]:
    """The arrays of an `answer` by name; raises InputError where it does not fit the arguments."""
    if answer is None:
        return {}
    check_answer(answer, arguments)
    found = {}
    for value, (name, *_) in zip(answer, arguments.alternatives, strict=True):
        if value is None:
            continue
        if name not in arguments.arrays:
            raise InputError(f"answer: {name} is a scalar; expected None")
        array = arguments.arrays[name]
        wanted = _viewed(value, 0) if isinstance(value, np.ndarray) else np.asarray(value)
        if wanted.size != array.size:
            raise InputError(f"answer: {wanted.size} elements for {name}, which has {array.size}")
        found[name] = wanted.astype(array.dtype)
    return found


def answer_on_host(answer: Sequence[Any] | None) -> Sequence[Any] | None:
    """An `answer` with the arrays of cupy and torch in the host's memory."""
    of_devices = ("__cuda_array_interface__", "detach")
    if not isinstance(answer, Sequence):
        return answer
    return [_on_host(one) if any(hasattr(one, name) for name in of_devices) else one for one in answer]


def check_answer(answer: Sequence[Any], arguments: KernelArguments) -> None:
    """Raise InputError unless there is an element for each argument."""
    if len(answer) != len(arguments.values):
        raise InputError(
            f"answer: {len(answer)} elements for {len(arguments.values)} arguments; None means input"
        )


def _leaves(value: Any) -> Iterator[Any]:
    """The values that a Tunable chooses from; any other value is its own."""
    if isinstance(value, Tunable):
        for one in value.values():
            yield from _leaves(one)
    else:
        yield value


def _chosen(value: Any, alternatives: Mapping[str, Any], params: Params) -> str:
    """The name of what a configuration passes; raises InputError where a Tunable has nothing for it."""
    if not isinstance(value, Tunable):
        return next(iter(alternatives))
    try:
        chosen = value.select_for_configuration(dict(params))
    except (KeyError, NameError) as error:
        raise InputError(f"arguments: {type(value).__name__}: {error}") from None
    return next(name for name, one in alternatives.items() if one is chosen)


def _relevant(given: Sequence[Any], parameters: Parameters | None) -> Iterator[Params]:
    """Configurations with every choice of a Tunable: of the parameters that they name, else of all."""
    keys = [one.param_key for one in given if isinstance(one, Tunable)]
    if not keys or parameters is None:
        yield {}
        return
    domains = {name: list(values.values()) for name, values in parameters.given.items()}
    if all(isinstance(key, str) and key in domains for key in keys):
        domains = {name: values for name, values in domains.items() if name in keys}
    for combination in itertools.product(*domains.values()):
        yield dict(zip(domains, combination, strict=True))


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
    """An array with elements that a space can describe: others than numbers as bytes."""
    if array.dtype.hasobject:
        raise InputError(f"arguments: number {place} holds Python objects; expected numbers")
    if array.dtype.name in C_TYPES:
        return array
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8)


def _scalar(value: np.generic, place: int) -> str:
    number = value.item()
    if not cmath.isfinite(number):
        raise InputError(f"arguments: number {place} is {number}; expected a finite number")
    return f"({number.real!r}, {number.imag!r})" if isinstance(number, complex) else repr(number)


def _const_parameters(kernel: str, source: str, count: int) -> list[bool]:
    """Which parameters of the kernel's signature are pointers to constants; none where it is not found."""
    match = re.search(rf"\b{re.escape(kernel)}\s*\(([^()]*)\)\s*\{{", bare_code(source))
    parameters = match[1].split(",") if match else []
    if len(parameters) != count:
        return [False] * count
    return [bool(re.search(r"\bconst\b.*\*", one, re.DOTALL)) for one in parameters]
