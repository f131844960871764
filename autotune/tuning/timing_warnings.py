"""Reasons to doubt times, before a search and after it: other programs, clocks, noise, and contradictions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from autotune.core.records import NOISY, Value
from autotune.core.text import count_text
from autotune.core.trials import Measurement, Objective, Trial
from autotune.processes.machine_load import CpuTimes, cores, cpu_times, governors
from autotune.tuning.result import SearchResult

SHIFT = 1.3  # a larger ratio of a last round's time to the search's, or the inverse, is doubtful
# share of the cores that other programs use, above which times are unsteady; a CPU's kernels need the cores
BUSY_SHARE = {"cpu": 0.25, "gpu": 0.75}


def is_busy(cores_of_others: float, kind: str) -> bool:
    """True if other programs use so much of the CPU that times on a device of this kind are unsteady."""
    return cores_of_others > cores() * BUSY_SHARE[kind]


def busy_text(cores_of_others: float) -> str:
    """CPU use of other programs, as text: `1.9 of 2 cores`."""
    return f"{cores_of_others:.1f} of {cores()} cores"


def slow_governors(kind: str) -> str:
    """The CPU governors in use that let clocks drop; empty for other devices."""
    return ", ".join(name for name in governors() if kind == "cpu" and name != "performance")


def cpu_load_warnings(default: Trial, kind: str, began: CpuTimes) -> Iterator[str]:
    """Warnings before the search, each with its remedy, by CPU times at its start and the default's trial."""
    others = began.cores_of_others(cpu_times())
    if is_busy(others, kind):
        yield f"other programs use {busy_text(others)}: times may be unsteady; stop them, or tune later"
    if slow := slow_governors(kind):
        yield f"the CPU's governor is {slow}: times may be unsteady; set performance"
    conditions = default.measurement.conditions if default.measurement else {}
    if "other_processes" in conditions:
        yield f"other processes use the device: {conditions['other_processes']}"


def timing_warnings(result: SearchResult) -> list[str]:
    """The reasons to doubt the times of a search; the last says what to do, if anything can be done."""
    searched_ms = {trial.config: trial.time_ms for trial in result.trials}
    again = ((result.winner.config, result.final), (result.task.spec.default, result.default))
    noise, kind = result.final.noise or 0.0, result.task.device.kind
    reasons = []
    if noise > NOISY:
        reasons.append(f"the machine was unsteady: {noise:.0%} noise between two timings of the same binary")
    if others := is_busy(result.cores_of_others, kind):
        reasons.append(f"other programs used {busy_text(result.cores_of_others)} during the search")
    if slow := slow_governors(kind):
        reasons.append(f"the CPU's governor is {slow}: times may be unsteady")
    reasons += _conditions(result.final.conditions)
    shifts = shifted([(searched_ms.get(config), final) for config, final in again])
    is_slower = bool(shifts) and result.final.median_ms > (result.winner.time_ms or math.inf)
    reasons += [*shifts, *([] if is_slower else _unrepeated(result))]  # else all times would be too low
    if noise > NOISY or others or (result.lacked_time and reasons):
        how = "with a longer --time" if result.lacked_time and not others else "on a quiet machine"
        reasons.append(f"run the search again {how}")
    return reasons


def _unrepeated(result: SearchResult) -> list[str]:
    """Doubt times in the search that are far below the winner's time in turns."""
    if result.objective is not Objective.TIME:
        return []
    faster_ms = {
        trial.config: trial.time_ms
        for trial in result.trials
        if trial.time_ms is not None and trial.time_ms * SHIFT < result.final.median_ms
    }
    outcomes = {True: "did not recur in the last round", False: "had no turn in the last round"}
    return [
        f"{count_text(len(ms), 'faster time')} of the search, down to {min(ms):.4g} ms, {outcome}"
        for is_again, outcome in outcomes.items()
        if (ms := [one for config, one in faster_ms.items() if (config in result.timed_again) is is_again])
    ]


def _conditions(conditions: Mapping[str, Value]) -> list[str]:
    doubts = []
    if "throttled" in conditions:
        doubts.append(f"the device was throttled: {conditions['throttled']}")
    if "other_processes" in conditions:
        doubts.append(f"other processes used the device: {conditions['other_processes']}")
    if float(conditions.get("flush_ratio", 2)) < 1.1:
        doubts.append("flushing the cache made no difference: caches may have been warm")
    return doubts


def shifted(pairs: Sequence[tuple[float | None, Measurement]]) -> list[str]:
    """Doubt the times if the last round ran on a faster or slower device than the search.

    Of the best and the default, it takes the search's time in ms and the measurement of the last round.
    """
    factors = [final.median_ms / time_ms for time_ms, final in pairs if time_ms]
    if len(factors) < len(pairs):
        return []
    factor = min(factors, key=lambda factor: abs(math.log(factor)))
    if 1 / SHIFT < factor < SHIFT or min(factors) < 1 < max(factors):
        return []
    change = f"took {factor:.2g} times as long" if factor > 1 else f"were {1 / factor:.2g} times as fast"
    return [f"configurations {change} in the last round as in the search: load or clocks changed"]
