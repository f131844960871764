"""A script's list of kernel arguments as arguments of a space, and back."""

from __future__ import annotations

import cmath
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernel_tuner.accuracy import Tunable
from numpy.typing import NDArray

from autotune.core.c_types import C_TYPES
from autotune.devices.element_types import host_array
from autotune.errors import InputError
from autotune.kernel_tuner.parameters import Parameters, Params
from autotune.sources.kernel_source import read_kernel_source
from autotune.space.arguments import INPUTS, Fill, FilledArgument


@dataclass(frozen=True)
class ListedArgument:
    """An argument as a script lists it, and the values that it may stand for by their names in the space.

    There is one value, or several for a Tunable.
    """

    given: Any
    values: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the space."""
        return tuple(self.values)

    def chosen(self, params: Params) -> str:
        """The name of what a configuration passes; raises InputError where a Tunable has nothing for it."""
        if not isinstance(self.given, Tunable):
            return self.names[0]
        try:
            chosen = self.given.select_for_configuration(dict(params))
        except (KeyError, NameError) as error:
            raise InputError(f"arguments: {type(self.given).__name__}: {error}") from None
        return next(name for name, value in self.values.items() if value is chosen)


@dataclass(frozen=True)
class KernelArguments:
    """The arguments of a kernel, as the script lists them."""

    listed: tuple[ListedArgument, ...]
    specs: tuple[FilledArgument, ...]  # all that these may stand for, and the constants, for the space
    arrays: Mapping[str, NDArray[Any]]  # as the kernel sees them
    passed: tuple[tuple[str, ...], ...]  # every list of names that some configuration passes to the kernel

    def number_passed(self, params: Params) -> int:
        """Which of the lists in `passed` a configuration passes to the kernel."""
        return self.passed.index(_chosen_names(self.listed, params))

    def outputs(self, arrays: Mapping[str, NDArray[Any]], params: Params) -> list[Any]:
        """The list again, with what arrays hold after a run in their place; None for those not found."""
        outputs: list[Any] = []
        for argument in self.listed:
            name = argument.chosen(params)
            value = argument.values[name]
            if name not in self.arrays:
                outputs.append(value)
            elif name not in arrays:
                outputs.append(None)
            else:
                host = on_host(value)
                outputs.append(arrays[name].reshape(-1).view(host.dtype).reshape(host.shape))
        return outputs


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
    listed = tuple(_listed_argument(value, place) for place, value in enumerate(given))
    specs: list[FilledArgument] = []
    arrays: dict[str, NDArray[Any]] = {}
    for place, argument in enumerate(listed):
        label = f"arguments: number {place}"
        for name, value in argument.values.items():
            if isinstance(value, np.generic) and value.dtype.name in C_TYPES:
                specs.append(FilledArgument(name, value.dtype.name, "scalar", value=_scalar(value, label)))
            else:
                arrays[name] = elements(on_host(value, label), label)
                specs.append(_array_spec(name, arrays[name], "in" if is_const[place] else "inout"))
    for number, (symbol, value) in enumerate((constants or {}).items(), len(arrays)):
        name = f"constant_{number}"
        arrays[name] = elements(np.atleast_1d(np.asarray(value)), f"cmem_args: {symbol}")
        specs.append(_array_spec(name, arrays[name], "in", symbol))
    passed = dict.fromkeys(_chosen_names(listed, params) for params in _relevant(given, parameters))
    return KernelArguments(listed, tuple(specs), arrays, tuple(passed))


def elements(array: NDArray[Any], label: str) -> NDArray[Any]:
    """An array with elements that a space can describe: others than numbers as bytes.

    Raises InputError, which begins with `label`, for Python objects.
    """
    if array.dtype.hasobject:
        raise InputError(f"{label} holds Python objects; expected numbers")
    if array.dtype.name in C_TYPES:
        return array
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def is_of_device(value: Any) -> bool:
    """True if it is an array of cupy or torch."""
    return hasattr(value, "__cuda_array_interface__") or hasattr(value, "detach")


def on_host(value: Any, label: str = "arguments") -> NDArray[Any]:
    """An array of numpy, cupy or torch in the host's memory; raises InputError for anything else.

    `label` says which argument it is, for the message.
    """
    array = host_array(value)
    if not isinstance(array, np.ndarray):
        raise InputError(
            f"{label}: expected an array, or a scalar such as numpy.int32(1); found {type(array).__name__}"
        )
    return array


def _listed_argument(value: Any, place: int) -> ListedArgument:
    choices = list(_alternatives(value))
    if len(choices) == 1:
        return ListedArgument(value, {f"argument_{place}": choices[0]})
    named = {f"argument_{place}_{number}": choice for number, choice in enumerate(choices)}
    return ListedArgument(value, named)


def _alternatives(value: Any) -> Iterator[Any]:
    """The values that a Tunable chooses from; any other value is its own."""
    if isinstance(value, Tunable):
        for choice in value.values():
            yield from _alternatives(choice)
    else:
        yield value


def _chosen_names(listed: Sequence[ListedArgument], params: Params) -> tuple[str, ...]:
    """The names of what a configuration passes to the kernel."""
    return tuple(argument.chosen(params) for argument in listed)


def _relevant(given: Sequence[Any], parameters: Parameters | None) -> Iterator[Params]:
    """Configurations with every choice of a Tunable: of the parameters that they name, else of all."""
    keys = [argument.param_key for argument in given if isinstance(argument, Tunable)]
    if not keys or parameters is None:
        yield {}
        return
    domains = {name: list(values.values()) for name, values in parameters.given.items()}
    if all(isinstance(key, str) and key in domains for key in keys):
        domains = {name: values for name, values in domains.items() if name in keys}
    for combination in itertools.product(*domains.values()):
        yield dict(zip(domains, combination, strict=True))


def _array_spec(name: str, array: NDArray[Any], role: str, symbol: str = "") -> FilledArgument:
    shape = tuple(str(extent) for extent in array.shape)
    return FilledArgument(name, array.dtype.name, role, shape, symbol=symbol, fill=Fill(INPUTS, ()))


def _scalar(value: np.generic, label: str) -> str:
    number = value.item()
    if not cmath.isfinite(number):
        raise InputError(f"{label} is {number}; expected a finite number")
    return f"({number.real!r}, {number.imag!r})" if isinstance(number, complex) else repr(number)


def _const_parameters(kernel: str, source: str, count: int) -> list[bool]:
    """Which parameters of the kernel's signature are pointers to constants; none where it is not found."""
    try:
        read = read_kernel_source(source)
    except InputError:
        return [False] * count
    parameters = next((function.parameters for function in read.functions if function.name == kernel), ())
    if len(parameters) != count:
        return [False] * count
    return [parameter.is_const and parameter.pointers > 0 for parameter in parameters]
