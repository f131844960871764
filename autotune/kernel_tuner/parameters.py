"""Tunable parameters and restrictions of a script as those of a space, and configurations back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernel_tuner import util

from autotune.core.expressions import parse, unknown_names
from autotune.core.json_values import is_name, is_word
from autotune.core.records import Parameter
from autotune.core.text import hint
from autotune.errors import ExpressionError, InputError

Params = Mapping[str, Any]
_SETTINGS = {"nvml_gr_clock": "sm_clock_mhz", "nvml_pwr_limit": "power_limit_w"}


@dataclass(frozen=True)
class Parameters:
    """`listed` are those of the space; `given` are the values that a script means by theirs."""

    listed: tuple[Parameter, ...]
    given: Mapping[str, Mapping[Any, Any]]

    def decode(self, config: Params) -> dict[str, Any]:
        """A configuration, or all values that an expression may read, as the script's own values."""
        return {name: values[config[name]] for name, values in self.given.items()}


def read_parameters(tune_params: Mapping[str, Sequence[Any]]) -> Parameters:
    """Read the dictionary of parameters; raises InputError.

    A value that is neither a number nor a word gets a word of its own in journal and cache.
    """
    if not isinstance(tune_params, Mapping) or not tune_params:
        raise InputError("tune_params: expected a dictionary of parameters and lists of values")
    listed, given = [], {}
    for name, values in tune_params.items():
        if not is_name(name):
            raise InputError(f"tune_params: {name!r}: expected a name of letters, digits and underscores")
        own = [value.item() if isinstance(value, np.generic) else value for value in values]
        if not own:
            raise InputError(f"tune_params: {name}: expected at least one value")
        numbers = all(isinstance(value, int | float) for value in own)
        words = all(isinstance(value, str) and is_word(value) for value in own)
        keys = own if numbers or words else [f"value_{place}" for place in range(len(own))]
        given[name] = dict(zip(keys, own, strict=True))
        listed.append(Parameter(name, tuple(given[name])))
    return Parameters(tuple(listed), given)


def device_settings(parameters: Parameters) -> dict[str, str]:
    """What a space sets of the device by parameters with these names; raises InputError for the memory's."""
    if "nvml_mem_clock" in parameters.given:
        raise InputError("tune_params: nvml_mem_clock is not supported: leave the memory's clock as it is")
    return {setting: name for name, setting in _SETTINGS.items() if name in parameters.given}


def read_restriction(restriction: Any, parameters: Parameters) -> Callable[[Params], bool]:
    """A condition on the script's own values; raises InputError for a text that cannot be read."""
    if isinstance(restriction, str):
        try:
            expression = parse(restriction)
        except ExpressionError as error:
            raise InputError(f"restrictions: {error}; write it as a function: lambda p: ...") from None
        if unknown := unknown_names(expression, parameters.given):
            raise InputError(f"restrictions: unknown name {unknown[0]!r}{hint(unknown[0], parameters.given)}")
        return lambda values: expression.holds(parameters.decode(values))
    if callable(restriction) and not hasattr(restriction, "_func") and not hasattr(restriction, "preProcess"):
        if _takes_one(restriction, parameters):
            return lambda values: bool(restriction(parameters.decode(values)))
        return lambda values: bool(restriction(**parameters.decode(values)))

    def holds(values: Params) -> bool:
        return bool(util.check_restriction(restriction, parameters.decode(values)))

    return holds


def _takes_one(function: Callable[..., Any], parameters: Parameters) -> bool:
    """Whether it takes a dictionary of parameters rather than each by its name."""
    names = list(inspect.signature(function).parameters)
    return len(names) == 1 and names[0] not in parameters.given


def as_constraint(restriction: Any, parameters: Parameters) -> str | None:
    """A restriction as an expression of a space, which is checked much faster; None where it is none."""
    if not isinstance(restriction, str):
        return None
    try:
        names = parse(restriction).names
    except ExpressionError:
        return None
    is_same = all(
        name in parameters.given and list(parameters.given[name]) == list(parameters.given[name].values())
        for name in names
    )
    return restriction if is_same else None
