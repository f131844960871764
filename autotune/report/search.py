"""A search that a report shows: its trials, and facts derived from them, each computed once."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import isclose
from pathlib import Path
from typing import Any

from autotune.analysis.compare import DeviceResult
from autotune.compilers.occupancy import Occupancy
from autotune.compilers.source_text import packaged
from autotune.core import launch_plan as plan
from autotune.core.expressions import Expression, names_behind, number, parse
from autotune.core.outcomes import Outcomes
from autotune.core.records import (
    Config,
    DeviceInfo,
    Entry,
    KernelRecord,
    Launch,
    LaunchSpec,
    Parameter,
    Sizes,
    Value,
)
from autotune.core.text import problem_text
from autotune.core.trials import Measurement, Objective, Trial, fewest_samples, ratio_interval
from autotune.diagnosis.device_rates import DeviceRates, Rate
from autotune.diagnosis.record import KeptDiagnosis
from autotune.diagnosis.trial_occupancy import occupancy_in
from autotune.errors import ExpressionError
from autotune.hardware.peak_rates import PeakRate, peak_rates
from autotune.interop.recording import numbers_first
from autotune.serving.ceilings import Ceiling
from autotune.space import SpaceSpec
from autotune.space.configurations import Landmark
from autotune.strength.record import Strength
from autotune.tuning.ties import indistinguishable


@dataclass(frozen=True)
class Step:
    """A landmark of the space that was tried."""

    landmark: Landmark
    trial: int  # its number
    time_ms: float | None


@dataclass(frozen=True)
class Search:
    """Trials of one kernel on one device for one problem, with all known and derived facts about them."""

    kernel: str
    device_name: str
    sizes: Sizes
    dtype: str | None
    data: str  # name of the inputs' content; empty where there is one only
    source: str  # where the trials are from, in words
    tried: tuple[Trial, ...]  # as the search timed them; a cache keeps neither failures nor their order
    finals: Mapping[str, Measurement] = field(default_factory=dict)  # of the last round, by key
    checks: Mapping[str, Outcomes] = field(default_factory=dict)  # of the last round, by key
    is_imported: bool = False
    is_cached: bool = False
    journal: Path | None = None
    source_sha256: str = ""  # of the kernel, or its beginning; empty where it is not known
    device: DeviceInfo | None = None  # as a cache has it, like `record` and `entry`
    record: KernelRecord | None = None
    entry: Entry | None = None  # of the same device, problem and source
    stages: Mapping[str, float] = field(default_factory=dict)  # of the latest search, in seconds
    doubts: Sequence[str] = ()  # of the latest search about its times
    explored: str = ""  # in words, the share that the latest search tried, and its estimate of the rest
    runtime: Mapping[str, str] = field(default_factory=dict)  # driver, runtime and compiler
    measured: Mapping[str, Ceiling] = field(default_factory=dict)  # by `autotune devices --measure`
    cpu: DeviceResult | None = None  # the fastest result of a CPU for the problem
    spec: SpaceSpec | None = None
    strength: Strength | None = None
    diagnosis: KeptDiagnosis | None = None  # the latest for the problem

    @cached_property
    def trials(self) -> list[Trial]:
        """The trials, each with its time of the last round where it took part."""
        finals = self.finals
        return [
            replace(trial, measurement=finals[trial.key])
            if trial.key in finals and trial.time_ms is not None
            else trial
            for trial in self.tried
        ]

    @property
    def space(self) -> SpaceSpec | KernelRecord | None:
        """The space: from its file, else from the cache."""
        return self.spec or self.record

    @property
    def problem(self) -> str:
        """Sizes, element type and data."""
        return problem_text(self.sizes, self.dtype, self.data)

    @property
    def run_command(self) -> str | None:
        """The beginning of the command that runs a configuration; None if the space file is not known."""
        command = self._command("run")
        return command and f"{command} --config"

    @property
    def diagnose_command(self) -> str | None:
        """The command that says what bounds the tuned best; None if the space file is not known."""
        return self._command("diagnose")

    def _command(self, name: str) -> str | None:
        if self.spec is None:
            return None
        own = self.spec.path.parent == packaged("spaces")
        words = ["autotune", name, self.kernel if own else str(self.spec.path)]
        for size_name, size in self.sizes.items():
            words += ["--size", f"{size_name}={size}"]
        words += ["--dtype", self.dtype] if self.dtype else []
        words += ["--data", self.data] if self.data else []
        return shlex.join(words)

    @cached_property
    def times_ms(self) -> list[float | None]:
        """Median time of each trial; None where it has none."""
        return [trial.time_ms for trial in self.trials]

    @cached_property
    def intervals_ms(self) -> list[tuple[float, float] | None]:
        """The interval of each time from a last round."""
        intervals = [
            self.finals[trial.key].interval_ms if trial.key in self.finals else None for trial in self.trials
        ]
        if self.is_cached and self.served and self.best is not None:
            intervals[self.best] = self.served.interval_ms
        return [interval if interval and interval[0] < interval[1] else None for interval in intervals]

    @property
    def interval_ms(self) -> tuple[float, float] | None:
        """The interval of the best time in its last round."""
        return None if self.best is None else self.intervals_ms[self.best]

    @property
    def noise(self) -> float | None:
        """The noise of the last round: between the medians of two timings of the same binary."""
        final = self.finals.get(self.best_trial.key) if self.best_trial else None
        return final.noise if final else None

    @property
    def is_settled(self) -> bool:
        """True if a last round has decided which trial is the best."""
        return self.is_cached or bool(self.finals)

    @cached_property
    def served(self) -> Entry | None:
        """The entry of the cache that this search was read from or has led to."""
        entry = self.entry
        if entry is None or self.is_cached:
            return entry
        last_ms = (
            trial.time_ms
            for trial in self.trials
            if trial.config == entry.config and trial.key in self.finals and trial.time_ms is not None
        )
        return entry if any(isclose(time_ms, entry.time_ms) for time_ms in last_ms) else None

    @cached_property
    def best(self) -> int | None:
        """The number of the best trial: the served one, else the last round's fastest, else the search's."""
        served, finals = self.served, self.finals
        if served is not None:
            served_places = (
                place
                for place, trial in enumerate(self.trials)
                if trial.config == served.config and (trial.key in finals or self.is_cached)
            )
            return next(served_places)
        timed = [place for place, time_ms in enumerate(self.times_ms) if time_ms is not None]
        last = [place for place in timed if self.trials[place].key in finals]
        return min(last or timed, key=lambda place: self.times_ms[place] or 0.0, default=None)

    @property
    def best_trial(self) -> Trial | None:
        """The best trial; `best` is its number."""
        return None if self.best is None else self.trials[self.best]

    @property
    def best_ms(self) -> float | None:
        """The time of the best trial."""
        return None if self.best is None else self.times_ms[self.best]

    @cached_property
    def ties(self) -> frozenset[Config]:
        """The configurations that the last round cannot tell from the best; a cache keeps a few of them."""
        best, finals = self.best_trial, self.finals
        stored = frozenset(self.served.ties if self.served else ())
        if best is None or best.key not in finals:
            return stored
        ours = finals[best.key]
        timed = (trial for trial in self.trials if trial.key in finals and trial.time_ms is not None)
        others = (trial for trial in timed if trial.key != best.key)
        return stored | {
            trial.config for trial in others if indistinguishable(ours, finals[trial.key], Objective.TIME)
        }

    def ratio_to_best(self, place: int) -> tuple[float, float] | None:
        """The interval of a trial's time over the best's; None unless both took part in the last round."""
        best, trial, finals = self.best_trial, self.trials[place], self.finals
        if best is None or not {best.key, trial.key} <= finals.keys():
            return None
        return ratio_interval(finals[trial.key], finals[best.key])

    @property
    def fewest_rounds(self) -> int:
        """The fewest rounds whose interval of ratios to the best reaches 95%."""
        final = self.finals.get(self.best_trial.key) if self.best_trial else None
        return fewest_samples(final.chosen_from if final else 1)

    @property
    def drift(self) -> tuple[float, float]:
        """The least and the highest ratio of a time in the last round to that in the search."""
        timed = [
            (one.time_ms, self.finals[one.key].median_ms) for one in self.tried if one.key in self.finals
        ]
        factors = [last_ms / once_ms for once_ms, last_ms in timed if once_ms]
        return min(factors, default=1.0), max(factors, default=1.0)

    def best_work(self, name: str) -> float | None:
        """The bytes or operations of the best trial, as far as they are known."""
        amounts = self.work.get(name)
        return None if amounts is None or self.best is None else amounts[self.best]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters in the space file's order, with all values that it lists or a trial has."""
        values: dict[str, dict[tuple[type, Value], Value]] = {}
        for parameter in self.space.parameters if self.space else ():
            values[parameter.name] = {(type(value), value): value for value in parameter.values}
        listed = set(values)
        for trial in self.trials:
            for name, value in trial.config.items():
                values.setdefault(name, {}).setdefault((type(value), value), value)
        return tuple(
            Parameter(
                name, tuple(seen.values() if name in listed else sorted(seen.values(), key=numbers_first))
            )
            for name, seen in values.items()
        )

    @cached_property
    def details(self) -> list[str]:
        """The detail of each trial; one that was faster than the best in the search says why it lost."""
        best_ms = self.best_ms
        details = []
        for place, (once, trial) in enumerate(zip(self.tried, self.trials, strict=True)):
            detail, once_ms = trial.detail, once.time_ms
            if self.is_settled and once_ms and best_ms and once_ms < best_ms:
                if trial.key in self.finals:
                    detail = f"{once_ms:.4g} ms in the search, {trial.time_ms:.4g} ms in the last round"
                elif place != self.best:
                    detail = f"a time of the search; the best takes {best_ms:.4g} ms in the last round"
            details.append(detail)
        return details

    @cached_property
    def default(self) -> int | None:
        """The number of the trial with the default of the space file, or of the cache."""
        config = self.space.default if self.space else None
        return next((place for place, trial in enumerate(self.trials) if trial.config == config), None)

    @cached_property
    def occupancies(self) -> list[Occupancy | None]:
        """Of the launch with the most threads, where registers, launches and architecture are known."""
        space, device = self.space, self.device
        if space is None or device is None or not any(trial.registers for trial in self.trials):
            return [None] * len(self.trials)
        texts = [
            text for step in space.launch for text in (*step.grid, *step.block, step.shared_bytes, step.when)
        ]
        launches = self._evaluated(texts, lambda values: _main_launch(space.launch, values))
        return [
            launch and occupancy_in(device, launch, trial)
            for trial, launch in zip(self.trials, launches, strict=True)
        ]

    @cached_property
    def work(self) -> dict[str, list[float | None]]:
        """Bytes and operations of each trial, as far as the space states them."""
        if self.spec is None:
            entry = self.entry
            amounts = {"bytes": entry and entry.work_bytes, "flops": entry and entry.work_flops}
            return {name: [amount] * len(self.trials) for name, amount in amounts.items() if amount}
        return {
            name: self._evaluated([text], partial(_amount, parse(text)))
            for name, text in self.spec.work.items()
        }

    def _evaluated(self, texts: Iterable[str], evaluate: Callable[[Mapping[str, Any]], Any]) -> list[Any]:
        """The value of some expressions for each trial; None where they have none."""
        derived = self.space.derived if self.space else {}
        used = names_behind((name for text in texts for name in parse(text).names), derived)
        needed = {name: text for name, text in derived.items() if name in used}
        results = []
        for trial in self.trials:
            try:
                values = plan.known_values(self.device, self.sizes, self.dtype or "", trial.config, needed)
                results.append(evaluate(values))
            except ExpressionError:  # of a space that has changed since, or of an unknown device
                results.append(None)
        return results

    @cached_property
    def ceilings(self) -> tuple[PeakRate, ...]:
        """The highest arithmetic rates of the device, as measured, else as calculated; the highest first."""
        if self.device is None or self.dtype is None:
            return ()
        measured = self.measured.get(f"{self.dtype} multiply-add")
        if measured is not None:
            return (PeakRate(f"{self.dtype} multiply-adds", measured.value * 1e-9, "measured"),)
        conditions = (trial.measurement.conditions for trial in self.tried if trial.measurement)
        clocks = (state.get("sm_clock_mhz") for state in conditions)
        highest = max((clock for clock in clocks if isinstance(clock, int | float)), default=None)
        return peak_rates(self.device, self.dtype, highest)

    @property
    def bandwidth(self) -> Rate | None:
        """The memory's bandwidth as measured, else as the device's description has it."""
        return DeviceRates(self.device, self.measured).memory_bytes(store_share=0.0) if self.device else None

    @cached_property
    def steps(self) -> list[Step]:
        """The landmarks that were tried, in the space file's order."""
        places = {trial.config: place for place, trial in enumerate(self.trials)}
        tried = [step for step in (self.spec.landmarks if self.spec else ()) if step.config in places]
        return [Step(step, place := places[step.config], self.times_ms[place]) for step in tried]


def _amount(expression: Expression, values: Mapping[str, Any]) -> float:
    return float(number(expression, values))


def _main_launch(steps: Sequence[LaunchSpec], values: Mapping[str, Any]) -> Launch | None:
    """The launch with the most threads."""
    launches = plan.launches([replace(step, constants=()) for step in steps], values)
    return max(launches, key=lambda launch: launch.threads, default=None)
