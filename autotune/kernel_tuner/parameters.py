"""Tunable parameters of a script as those of a space, and configurations back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from autotune.core.json_values import is_name, is_word
from autotune.core.records import Parameter
from autotune.errors import InputError
from autotune.space.functions import Values

Params = Mapping[str, Any]  # a configuration in the script's own values
_SETTINGS = {"nvml_gr_clock": "sm_clock_mhz", "nvml_pwr_limit": "power_limit_w"}
_PHASES = ("compile", "verification", "benchmark", "strategy", "framework")
RESULT_NAMES = {  # columns of results in addition to the parameters
    *("time", "times", "timestamp", "__error__"),
    *(f"{phase}_time" for phase in _PHASES),
}
_GRID_NAMES = ("grid_size_x", "grid_size_y", "grid_size_z")  # Kernel Tuner defines them
_T = TypeVar("_T")


@dataclass(frozen=True)
class Parameters:
    """`listed` are those of the space; `given` are the values that a script means by theirs."""

    listed: tuple[Parameter, ...]
    given: Mapping[str, Mapping[Any, Any]]

    @property
    def first(self) -> dict[str, Any]:
        """The first value of each, as a script has it."""
        return {name: next(iter(values.values())) for name, values in self.given.items()}

    def decode(self, config: Values) -> dict[str, Any]:
        """A configuration, or all values that an expression may read, as the script's own values."""
        return {name: values[config[name]] for name, values in self.given.items()}

    def decoding(self, function: Callable[[dict[str, Any]], _T]) -> Callable[[Values], _T]:
        """A function of the script's own values as one of the space's."""
        return lambda values: function(self.decode(values))

    def is_same(self, name: str) -> bool:
        """True if the space's values of a parameter are the script's own."""
        return list(self.given[name]) == list(self.given[name].values())

    def is_whole(self, name: str) -> bool:
        """True if all of its values are whole numbers of at least 0, the same in the space and the script."""
        return self.is_same(name) and all(isinstance(value, int) and value >= 0 for value in self.given[name])


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
        if name in RESULT_NAMES or name in _GRID_NAMES:
            raise InputError(f"tune_params: {name}: results have this name; give the parameter another one")
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
