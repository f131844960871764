"""Warnings before a search: other programs make times unsteady, or clocks are low."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.core.trials import Trial
from autotune.processes.machine_load import CpuTimes, cores, cpu_times, governors

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


def load_warnings(default: Trial, kind: str, began: CpuTimes) -> Iterator[str]:
    """Warnings before the search, each with its remedy.

    Args:
        default: The first trial, with the device's conditions.
        kind: The device's kind, `cpu` or `gpu`.
        began: CPU times at the start of the run.
    """
    others = began.cores_of_others(cpu_times())
    if is_busy(others, kind):
        yield f"other programs use {busy_text(others)}: times may be unsteady; stop them, or tune later"
    if slow := slow_governors(kind):
        yield f"the CPU's governor is {slow}: times may be unsteady; set performance"
    conditions = default.measurement.conditions if default.measurement else {}
    if "other_processes" in conditions:
        yield f"other processes use the device: {conditions['other_processes']}"
