"""Results of one kernel on one device, whoever measured them: the record that all formats meet in.

Each format's module makes a `Recording` of a file and a file of a `Recording`. What a format says and no
field holds is carried along as it stands, so that reading, writing and reading again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.core import json_values as values
from autotune.core.records import Config, Parameter, Sizes, Value
from autotune.core.trials import Status

SIZES = values.nullable(values.mapping_of(values.size, values.name))  # of a file; null: it does not say
_UNSET = 1e19  # some recorders write a huge number in the place of a time they do not have


@dataclass(frozen=True)
class Costs:
    """What finding one result out took; None: not recorded. The searcher's own time is apart."""

    compile_ms: float | None = None
    benchmark_ms: float | None = None
    framework_ms: float | None = None
    verification_ms: float | None = None
    search_ms: float | None = None


@dataclass(frozen=True)
class RecordedResult:
    """How one configuration ended; `time_ms` is the recorded figure, None unless the status is OK.

    `detail` says why it failed, in the recorder's words; `extras` are the format's own entries.
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
        """Time of all phases; the runs themselves where the benchmark's time is not recorded."""
        costs = self.costs
        benchmark_ms = sum(self.samples_ms) if costs.benchmark_ms is None else costs.benchmark_ms
        phases = (costs.compile_ms, costs.framework_ms, costs.verification_ms)
        return (benchmark_ms + sum(phase or 0.0 for phase in phases)) / 1e3


@dataclass(frozen=True)
class Recording:
    """All results of a file. `sizes` None: the file does not say; `format` names whose extras these are."""

    kernel: str
    device: str
    sizes: Sizes | None
    parameters: tuple[Parameter, ...]
    results: tuple[RecordedResult, ...]
    format: str
    extras: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dtype(self) -> str | None:
        """The element type; None where the file does not say, as only journals of searches do."""
        said = self.extras.get("dtype")
        return said if isinstance(said, str) else None

    @property
    def best(self) -> RecordedResult | None:
        """The fastest result; None when all failed."""
        timed = [result for result in self.results if result.time_ms is not None]
        return min(timed, key=lambda result: result.time_ms or 0.0, default=None)


def recorded_number(value: object) -> float | None:
    """A recorded time; None for everything that stands for a missing one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _UNSET else None  # which nan is not


def domains(names: Iterable[str], configs: Iterable[Mapping[str, Value]]) -> tuple[Parameter, ...]:
    """Parameters with the values that occur, numbers in order before names; 1, 1.0 and True are one value."""
    seen: dict[str, dict[Value, None]] = {name: {} for name in names}
    for config in configs:
        for name, found in seen.items():
            found.setdefault(config[name])
    return tuple(Parameter(name, tuple(sorted(found, key=_rank))) for name, found in seen.items())


def _rank(value: Value) -> tuple[bool, float, str]:
    return (True, 0.0, value) if isinstance(value, str) else (False, float(value), "")
