"""Recorded results of one kernel on one device, independent of the tool that measured them.

Each format's module reads a `Recording` and writes one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

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
    """

    config: Config
    status: Status
    time_ms: float | None
    detail: str = ""
    samples_ms: tuple[float, ...] = ()
    costs: Costs = Costs()

    @property
    def cost_s(self) -> float:
        """Time of all phases; without a recorded benchmark time, the samples' sum counts."""
        costs = self.costs
        benchmark_ms = sum(self.samples_ms) if costs.benchmark_ms is None else costs.benchmark_ms
        phases = (costs.compile_ms, costs.framework_ms, costs.verification_ms)
        return (benchmark_ms + sum(phase or 0.0 for phase in phases)) / 1e3


@dataclass(frozen=True)
class Recording:
    """All results of a file; its sizes, element type and name of the inputs' content are None if unknown."""

    kernel: str
    device: str
    sizes: Sizes | None
    parameters: tuple[Parameter, ...]
    results: tuple[RecordedResult, ...]
    dtype: str | None = None
    data: str | None = None

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


def recorded_config(value: Mapping[str, object], names: Collection[str], place: str) -> Config:
    """Read a configuration; raises Damaged if a parameter is missing or not a plain value."""
    return Config({name: values.plain(value.get(name), f"{place}.{name}") for name in names})


def recorded_number(value: object) -> float | None:
    """A recorded time; None for any value that marks a missing one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _UNSET else None  # nan is not in the range


def recorded_samples(value: object, place: str, unit_ms: float = 1.0) -> tuple[float, ...]:
    """The times of single runs in a list; none where it lacks some of them."""
    numbers = [recorded_number(item) for item in values.items(value, place)]
    return () if None in numbers else tuple(number * unit_ms for number in numbers if number is not None)


def recorded_costs(entries: Mapping[str, object], phases: Mapping[str, str], unit_ms: float = 1.0) -> Costs:
    """The costs of phases; `phases` has the field of `Costs` by the name in the format."""
    found = {name: recorded_number(entries.get(phase)) for phase, name in phases.items()}
    return Costs(**{name: number * unit_ms for name, number in found.items() if number is not None})


def written_costs(costs: Costs, phases: Mapping[str, str]) -> dict[str, float]:
    """The known costs by their names in the format, as `recorded_costs` reads them."""
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
