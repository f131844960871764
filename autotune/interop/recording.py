"""Recorded results of one kernel on one device, independent of the tool that measured them.

Each format's module reads and writes a `Recording`. Its `extras` keep whatever no other field holds, so that
a file that is read and written again does not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from autotune.core import json_values as values
from autotune.core.records import Config, Parameter, Sizes, Value
from autotune.core.trials import Measurement, Rule, Status, Trial

_UNSET = 1e19  # some tools write a huge number instead of a missing time


@dataclass(frozen=True)
class Costs:
    """Times of one trial's phases; None: not recorded."""

    compile_ms: float | None = None
    benchmark_ms: float | None = None
    framework_ms: float | None = None
    verification_ms: float | None = None
    search_ms: float | None = None


@dataclass(frozen=True)
class RecordedResult:
    """The result of one configuration.

    Attributes:
        config: The configuration.
        status: How it ended.
        time_ms: The recorded time; None unless the status is OK.
        detail: Why it failed, in the words of the tool.
        samples_ms: Times of single runs.
        costs: Of its phases.
        extras: Other entries of the format.
    """

    config: Config
    status: Status
    time_ms: float | None
    detail: str = ""
    samples_ms: tuple[float, ...] = ()
    costs: Costs = Costs()
    extras: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cost_s(self) -> float:
        """Time of all phases but the search; without a recorded benchmark time, the samples' sum counts."""
        costs = self.costs
        benchmark_ms = sum(self.samples_ms) if costs.benchmark_ms is None else costs.benchmark_ms
        phases = (costs.compile_ms, costs.framework_ms, costs.verification_ms)
        return (benchmark_ms + sum(phase or 0.0 for phase in phases)) / 1e3


@dataclass(frozen=True)
class Recording:
    """All results of a file; `sizes` is None if unknown, `format` names the format of the extras."""

    kernel: str
    device: str
    sizes: Sizes | None
    parameters: tuple[Parameter, ...]
    results: tuple[RecordedResult, ...]
    format: str
    extras: Mapping[str, Any] = field(default_factory=dict)

    def in_format(self, name: str) -> Recording:
        """The recording as a format can write it: without what only another format has."""
        if self.format == name:
            return self
        results = tuple(replace(result, extras={}) for result in self.results)
        return replace(self, results=results, format=name, extras={})

    @property
    def dtype(self) -> str | None:
        """The element type; None if unknown, as in all formats but journals of searches."""
        return self._text("dtype")

    @property
    def data(self) -> str | None:
        """The name of the inputs' content; None if unknown, or if there is only one."""
        return self._text("data")

    def _text(self, name: str) -> str | None:
        found = self.extras.get(name)
        return found if isinstance(found, str) else None

    @property
    def best(self) -> RecordedResult | None:
        """The fastest result; None if all failed."""
        timed = [result for result in self.results if result.time_ms is not None]
        return min(timed, key=lambda result: result.time_ms or 0.0, default=None)


def trial_of(result: RecordedResult, rule: Rule) -> Trial:
    """The trial of a recorded result, with the recorded time as its one sample; `rule` says whose it is."""
    return Trial(
        config=result.config,
        key=result.config.key,
        status=result.status,
        detail=result.detail,
        measurement=None if result.time_ms is None else Measurement((result.time_ms,), rule),
        compile_ms=result.costs.compile_ms or 0.0,
        cost_s=result.cost_s,
    )


def recorded_config(value: Mapping[str, Any], names: Collection[str], place: str) -> Config:
    """Read a configuration; raises Damaged if a parameter is missing or not a plain value."""
    return Config({name: values.plain(value.get(name), f"{place}.{name}") for name in names})


def recorded_number(value: object) -> float | None:
    """A recorded time; None for any value that marks a missing one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _UNSET else None  # nan is not in the range


def take_samples(entries: dict[str, Any], key: str, place: str, unit_ms: float = 1.0) -> tuple[float, ...]:
    """Remove and return the times of single runs; a list that lacks some of them stays."""
    numbers = [recorded_number(item) for item in values.items(entries.get(key, []), f"{place}.{key}")]
    samples = tuple(number * unit_ms for number in numbers if number is not None)
    if not samples or len(samples) < len(numbers):
        return ()
    del entries[key]
    return samples


def take_costs(entries: dict[str, Any], phases: Mapping[str, str], unit_ms: float = 1.0) -> Costs:
    """Remove and return the costs of phases; `phases` has the field of `Costs` by the name in the format."""
    found = {}
    for phase, name in phases.items():
        number = recorded_number(entries.get(phase))
        if number is not None:
            found[name] = number * unit_ms
            del entries[phase]
    return Costs(**found)


def written_costs(costs: Costs, phases: Mapping[str, str]) -> dict[str, float]:
    """The known costs by their names in the format, as `take_costs` reads them."""
    found = {phase: getattr(costs, name) for phase, name in phases.items()}
    return {phase: value for phase, value in found.items() if value is not None}


def domains(names: Iterable[str], configs: Iterable[Mapping[str, Value]]) -> tuple[Parameter, ...]:
    """Parameters with the values that occur, numbers first; 1, 1.0 and True are the same value."""
    seen: dict[str, dict[Value, None]] = {name: {} for name in names}
    for config in configs:
        for name, found in seen.items():
            found.setdefault(config[name])
    return tuple(Parameter(name, tuple(sorted(found, key=numbers_first))) for name, found in seen.items())


def numbers_first(value: Value) -> tuple[bool, float, str]:
    """The rank of a value among those of its parameter: numbers in order, then names."""
    return (True, 0.0, value) if isinstance(value, str) else (False, float(value), "")
