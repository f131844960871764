"""Kernel Tuner's observers, as far as autotune measures or can tell what they observe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kernel_tuner.observers import OutputObserver
from kernel_tuner.observers.nvml import NVMLObserver

from autotune.core.trials import Trial
from autotune.errors import InputError

_READINGS = {"temperature": "temperature_c", "core_freq": "sm_clock_mhz"}
_ENERGY = ("nvml_energy", "nvml_power")
Outputs = Sequence[Any]


@dataclass(frozen=True)
class Observers:
    """What a script observes: outputs of a run by its own means, and readings of NVML by ours."""

    outputs: tuple[OutputObserver, ...]
    readings: tuple[str, ...]
    results: dict[str, dict[str, Any]] = field(default_factory=dict)  # of `outputs`, by configuration

    @property
    def measures_energy(self) -> bool:
        """True if a reading needs the energy of a run."""
        return any(name in _ENERGY for name in self.readings)

    def see(self, key: str, answer: Any, outputs: Outputs) -> None:
        """Show what a configuration computed to the script's observers."""
        for observer in self.outputs:
            observer.process_output(answer, outputs)
            self.results.setdefault(key, {}).update(observer.get_results())

    def of(self, trial: Trial) -> dict[str, Any]:
        """What was observed of a trial, by the names that Kernel Tuner uses."""
        results = dict(self.results.get(trial.config.key, {}))
        measurement = trial.measurement
        if measurement is None:
            return results
        for name in self.readings:
            if name in _READINGS:
                results[name] = measurement.conditions.get(_READINGS[name])
            elif measurement.energy_j is not None:
                per_second = name == "nvml_power"
                results[name] = measurement.energy_j / (measurement.median_ms * 1e-3 if per_second else 1.0)
        return results


def read_observers(given: Sequence[Any] | None) -> Observers:
    """Sort the observers of a script; raises InputError for those whose readings cannot be had."""
    outputs, readings = [], list[str]()
    for observer in given or ():
        if isinstance(observer, OutputObserver):
            outputs.append(observer)
        elif isinstance(observer, NVMLObserver):
            readings += _nvml_readings(observer)
        else:
            raise InputError(
                f"observers: {type(observer).__name__} is not supported, as configurations run in another "
                "process; autotune run --profile ncu profiles one of them"
            )
    return Observers(tuple(outputs), tuple(readings))


def _nvml_readings(observer: NVMLObserver) -> list[str]:
    of_energy = getattr(getattr(observer, "continuous_observer", None), "observables", ())
    names = [*observer.observables, *of_energy]
    known = (*_ENERGY, *_READINGS)
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"observers: NVMLObserver: {unknown[0]} is not supported; known: {', '.join(known)}")
    return names
