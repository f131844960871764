"""Reads from a call of a Triton kernel what its configuration depends on: sizes and the element type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from autotune.core.launch_plan import NO_ARRAY
from autotune.core.records import ArgumentSpec, KernelRecord, LaunchSpec
from autotune.errors import InputError


def launch_of(kernel: str, steps: Iterable[LaunchSpec], function: str) -> LaunchSpec:
    """The step of a launch plan that launches a Triton function; raises InputError without one."""
    steps = list(steps)
    for step in steps:
        if step.entry == function:
            return step
    known = ", ".join(step.entry for step in steps)
    raise InputError(
        f"{kernel}: launches {known}, not the Triton function {function}; is it the name of another kernel?"
    )


def reader_of(record: KernelRecord, function: str, parameters: Sequence[str]) -> CallReader:
    """The reader of a cached kernel's calls; raises InputError."""
    step = launch_of(record.kernel, record.launch, function)
    if not step.constants:
        raise InputError(f"{record.kernel}: the cached kernel is not in Triton")
    return CallReader(record.kernel, step, record.arguments, record.size_names, parameters)


class CallReader:
    """Reads the sizes and the element type of a call from its arguments."""

    def __init__(
        self,
        kernel: str,
        step: LaunchSpec,
        arguments: Iterable[ArgumentSpec],
        sizes: Iterable[str],
        parameters: Sequence[str],
    ) -> None:
        """Take a launch and its arguments; raises InputError if they do not give every size.

        `parameters` are the parameters of the function that are no constants, in order.
        """
        names = zip(parameters, step.arguments, strict=False)
        passed = {array: name for array, name in names if name != NO_ARRAY}
        specs = {argument.name: argument for argument in arguments}
        numbers = {parameter: value for parameter, name in passed.items() if (value := specs[name].value)}
        arrays = {parameter: specs[name] for parameter, name in passed.items() if specs[name].value is None}
        origins: dict[str, tuple[str, int | None]] = {}  # parameter, and place in the shape of an array
        for parameter, value in numbers.items():
            origins.setdefault(value, (parameter, None))
        for parameter, spec in arrays.items():
            for place, extent in enumerate(spec.shape):
                origins.setdefault(extent, (parameter, place))
        if missing := ", ".join(sorted(set(sizes) - origins.keys())):
            raise InputError(f"{kernel}: no argument of the function gives the size {missing}")
        self._kernel = kernel
        self._origins = {name: origins[name] for name in sorted(sizes)}
        self._array = next(iter(arrays))
        self._generic = next((parameter for parameter, spec in arrays.items() if spec.dtype == "DTYPE"), None)

    def problem(self, given: Mapping[str, Any]) -> tuple[dict[str, int], str | None]:
        """The sizes and element type of a recorded call; raises InputError for a call of another kernel."""
        try:
            return self.sizes(given), self.dtype(given)
        except (KeyError, IndexError, TypeError, ValueError):
            raise InputError(f"{self._kernel}: the call's arguments are not those of the space") from None

    def sizes(self, given: Mapping[str, Any]) -> dict[str, int]:
        """The sizes of a call."""
        return {
            name: int(given[parameter] if place is None else given[parameter].shape[place])
            for name, (parameter, place) in self._origins.items()
        }

    def dtype(self, given: Mapping[str, Any]) -> str | None:
        """The element type of a call; None if the kernel has a single type."""
        return None if self._generic is None else str(given[self._generic].dtype).rpartition(".")[2]

    def device(self, given: Mapping[str, Any]) -> Any:
        """The device of a call's arrays; for arrays in the host's memory it is Triton's interpreter."""
        device = given[self._array].device
        return "interpreter" if getattr(device, "type", "") == "cpu" else device
