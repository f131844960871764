"""Counters of configurations that were timed: in a copy of the kernel, and where it may by Nsight Compute."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.core.stages import Stage
from autotune.core.trials import Trial
from autotune.diagnosis.hardware_counters import hardware_counters, why_no_counters
from autotune.diagnosis.other_forms import OtherForms
from autotune.errors import CompileError, InputError, SetupError
from autotune.processes.scratch_folder import scratch_folder
from autotune.tuning.context import FULL_POLICY, open_context
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.study import study_of
from autotune.tuning.task import TuningTask


@dataclass(frozen=True)
class CountedRun:
    """Counters of one run; each is None where it could not be counted.

    Attributes:
        active_threads: Of the 32 of a warp, mean over instructions.
        sectors_per_request: Of 32 bytes, for each access of a warp to global memory.
        conflict_degree: Passes of shared memory over those without bank conflicts.
        barrier_stalls: Warps that wait at a barrier, for each instruction that is issued.
        issue_percent: Share of the issue slots that are used.
        occupancy_percent: Warps that were resident, of those that a multiprocessor can hold.
    """

    active_threads: float | None = None
    sectors_per_request: float | None = None
    conflict_degree: float | None = None
    barrier_stalls: float | None = None
    issue_percent: float | None = None
    occupancy_percent: float | None = None


def counted_runs(
    task: TuningTask, options: Options, observer: Observer, trials: Mapping[str, Trial]
) -> dict[str, CountedRun]:
    """Run each configuration that was timed once more, and count.

    What cannot be counted is told once, by a warning, and not tried again for the others.

    Args:
        task: The bound space.
        options: How to compile and run.
        observer: Receives the stages and the warnings.
        trials: The trials by name.
    """
    missing: set[str] = set()
    found: dict[str, CountedRun] = {}
    with ExitStack() as opened:
        journal = Path(opened.enter_context(scratch_folder())) / "counters.jsonl"  # no trial gets there
        own = replace(options, fresh=True, journal=journal)
        context = opened.enter_context(open_context(study_of(task, own), own, observer, FULL_POLICY))
        for number, (name, trial) in enumerate(trials.items()):
            if trial.measurement is None:
                continue
            observer.stage(Stage("counting", number, len(trials)))
            forms, run = OtherForms(context, trial), CountedRun()
            if "instructions" not in missing:
                try:
                    counts = forms.counts()
                    run = replace(
                        run,
                        active_threads=counts.active_lanes,
                        sectors_per_request=counts.sectors / counts.requests if counts.requests else None,
                        conflict_degree=counts.conflict_degree if counts.min_shared_passes else None,
                    )
                except (InputError, SetupError, CompileError) as error:
                    observer.warn(f"instructions were not counted{name and f' of {name}'}: {error}")
                    missing |= {"instructions"} if isinstance(error, InputError) else set()
            if "hardware" not in missing:
                try:
                    by_name = hardware_counters(task, forms.binary, forms.problem)
                    run = replace(
                        run,
                        barrier_stalls=by_name.get("warps waiting at barriers"),
                        issue_percent=by_name.get("issue slots used, %"),
                        occupancy_percent=by_name.get("achieved occupancy, %"),
                    )
                except (InputError, SetupError) as error:
                    observer.warn(why_no_counters(error))
                    missing |= {"hardware"}
            found[name] = run
    return found
