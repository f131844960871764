"""Counters of configurations that were timed: in a copy of the kernel, and where it may by Nsight Compute."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from autotune.core.stages import Stage
from autotune.core.trials import Trial
from autotune.diagnosis.hardware_counters import hardware_counters
from autotune.diagnosis.other_forms import OtherForms
from autotune.errors import CompileError, InputError, SetupError
from autotune.processes.scratch_folder import scratch_folder
from autotune.tuning.context import open_run
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask

_IN_A_COPY = (
    "active threads",  # of the 32 of a warp, mean over instructions
    "sectors per request",  # of 32 bytes, for each access of a warp to global memory
    "bank conflicts",  # passes of shared memory over those without any
)
_BY_HARDWARE = (  # as `hardware_counters` names them
    "warps waiting at barriers",  # for each instruction that is issued
    "issue slots used, %",
    "achieved occupancy, %",
)

CountedRun = Mapping[str, float | None]  # None for what could not be counted


def counted_runs(
    task: TuningTask, options: Options, observer: Observer, trials: Mapping[str, Trial]
) -> dict[str, CountedRun]:
    """Run each configuration that was timed once more, and count, by the names of the trials.

    What cannot be counted is told once, by a warning, and not tried again for the others.
    """
    observer.over()
    missing: set[str] = set()
    runs: dict[str, CountedRun] = {}
    with ExitStack() as opened:
        journal = Path(opened.enter_context(scratch_folder())) / "counters.jsonl"  # no trial gets there
        own = replace(options, fresh=True, journal=journal)
        context = opened.enter_context(open_run(task, own, observer))
        for number, (name, trial) in enumerate(trials.items()):
            if trial.measurement is None:
                continue
            observer.stage(Stage("counting", number, len(trials)))
            forms, counted = OtherForms(context, trial), dict[str, float]()
            if "instructions" not in missing:
                try:
                    counted |= _instructions(forms)
                except (InputError, SetupError, CompileError) as error:
                    observer.warn(f"instructions were not counted{name and f' of {name}'}: {error}")
                    missing |= {"instructions"} if isinstance(error, InputError) else set()
            if "hardware" not in missing:
                try:
                    counted = hardware_counters(task, forms.binary, forms.workload) | counted
                except (InputError, SetupError) as error:
                    observer.warn(str(error))
                    missing |= {"hardware"}
            runs[name] = {counter: counted.get(counter) for counter in (*_IN_A_COPY, *_BY_HARDWARE)}
    return runs


def _instructions(forms: OtherForms) -> dict[str, float]:
    """The counts of a run in a copy of the kernel; raises as `OtherForms.counts` does."""
    counts = forms.counts()
    shown = {"active threads": counts.active_lanes}
    if counts.requests:
        shown["sectors per request"] = counts.sectors / counts.requests
    if counts.min_shared_passes:
        shown["bank conflicts"] = counts.conflict_degree
    return shown
