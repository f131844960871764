"""Recorded trials of one kernel on one device, independent of the tool that measured them.

Each format's module reads a `Recording` and writes one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from autotune.core import json_values as values
from autotune.core.records import Config, Parameter, Sizes, Value
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial

IMPORTED = "imported"  # begins the keys of trials that no search here has made
_UNSET = 1e19  # some tools write a huge number instead of a missing time


@dataclass(frozen=True)
class Recording:
    """All trials of a file; its sizes, element type and name of the inputs' content are None if unknown."""

    kernel: str
    device: str
    sizes: Sizes | None
    parameters: tuple[Parameter, ...]
    trials: tuple[Trial, ...]
    dtype: str | None = None
    data: str | None = None

    @property
    def best(self) -> Trial | None:
        """The fastest trial; None if all failed."""
        timed = [trial for trial in self.trials if trial.time_ms is not None]
        return min(timed, key=lambda trial: trial.time_ms or 0.0, default=None)


def imported_trial(
    config: Config,
    status: Status,
    time_ms: float | None = None,
    detail: str = "",
    *,
    compile_ms: float = 0.0,
    cost_s: float = 0.0,
) -> Trial:
    """A trial of another tool, with the recorded time as its one sample; no search takes it for its own."""
    return Trial(
        config=config,
        key=f"{IMPORTED}:{config.key}",
        failure=None if status is Status.OK else Failure(status, detail),
        note=detail if status is Status.OK else "",
        measurement=None if time_ms is None else Measurement((time_ms,), Rule.IMPORTED),
        compile_ms=compile_ms,
        cost_s=cost_s,
    )


@dataclass(frozen=True)
class CostNames:
    """The names that a format gives to the times of a trial's phases, and to the list of its runs."""

    compiling: str
    benchmark: str
    others: tuple[str, ...]
    runs: str

    def read(self, entries: Mapping[str, object], place: str, unit_ms: float = 1.0) -> dict[str, float]:
        """The costs of a trial, as `imported_trial` takes them.

        Without a recorded time of the benchmark, the sum of the runs counts.
        """
        runs = values.items(entries.get(self.runs, []), f"{place}.{self.runs}")
        costs = {
            name: recorded_number(entries.get(name))
            for name in (self.compiling, self.benchmark, *self.others)
        }
        if costs[self.benchmark] is None and None not in (times := [*map(recorded_number, runs)]):
            costs[self.benchmark] = sum(time or 0.0 for time in times)
        return {
            "compile_ms": (costs[self.compiling] or 0.0) * unit_ms,
            "cost_s": sum(time or 0.0 for time in costs.values()) * unit_ms / 1e3,
        }

    def written(self, trial: Trial) -> dict[str, float | list[float]]:
        """The costs in ms, and the runs of a trial that was timed here."""
        rest_ms = max(0.0, trial.cost_s * 1e3 - trial.compile_ms)
        costs: dict[str, float | list[float]] = {self.compiling: trial.compile_ms, self.benchmark: rest_ms}
        if trial.measurement is not None and trial.measurement.rule is not Rule.IMPORTED:
            costs[self.runs] = list(trial.measurement.samples_ms)
        return costs


def recorded_config(value: Mapping[str, object], names: Collection[str], place: str) -> Config:
    """Read a configuration; raises Damaged if a parameter is missing or not a plain value."""
    return Config({name: values.plain(value.get(name), f"{place}.{name}") for name in names})


def recorded_number(value: object) -> float | None:
    """A recorded time; None for any value that marks a missing one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _UNSET else None  # nan is not in the range


def domains(names: Iterable[str], configs: Iterable[Mapping[str, Value]]) -> tuple[Parameter, ...]:
    """Parameters with the values that occur, numbers first; 1, 1.0 and True are the same value."""
    seen: dict[str, dict[Value, None]] = {name: {} for name in names}
    for config in configs:
        for name, domain in seen.items():
            domain.setdefault(config[name])
    return tuple(Parameter(name, tuple(sorted(domain, key=numbers_first))) for name, domain in seen.items())


def numbers_first(value: Value) -> tuple[bool, float, str]:
    """The rank of a value among those of its parameter: numbers in order, then names."""
    return (True, 0.0, value) if isinstance(value, str) else (False, float(value), "")
