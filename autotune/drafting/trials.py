"""Steps that load a space, and compile or run its default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from autotune.analysis.compile_survey import Settings, survey
from autotune.analysis.host_run import run_on_host
from autotune.compilers.binary_cache import default_folder
from autotune.core.outcomes import Unchecked
from autotune.core.text import count_text, first_error, size_text
from autotune.core.trials import Budget, Failure, Status
from autotune.drafting.space_draft import ARCHITECTURE, Note
from autotune.errors import InputError
from autotune.evaluation.device_process import arrays_after_run, read_and_remove
from autotune.hardware.architectures import architecture
from autotune.processes.scratch_folder import scratch_folder
from autotune.space import load_space, require_seen
from autotune.tuning.context import open_run
from autotune.tuning.failed_default import failed_default
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.single_runs import run_once
from autotune.tuning.task import Target, TuningTask, count_space, read_task

_RUN_S = 10.0  # time limit of the default's run
_CPU_S = 600.0  # the caller's limit for all steps ends a run on the CPU before
_SHOWN = 3  # findings about a space
_OF_SIZES = (Status.CRASHED, Status.OUT_OF_BOUNDS, Status.TIMEOUT)  # guessed sizes may be the cause
_MOST_LEFT = 0.75  # of an output's elements that a run may leave as they were; half are 0 after a rectifier


def count(space: Path, *, has_device: bool) -> int:
    """Load a space and count its valid configurations; raises InputError if it does not load."""
    bound, source = count_space(Target(space, None if has_device else ARCHITECTURE))
    require_seen(bound, source.text)
    if why := bound.why_invalid(bound.spec.default):
        raise InputError(f"{space}: its default is not valid: {'; '.join(why)}")
    return len(bound)


def run_default(space: Path) -> list[Note]:
    """Verify and time the default of a space on a device of this machine; the last note says how it did."""
    task, observer = read_task(Target(space)), _Warnings()
    with scratch_folder() as folder:
        options = Options(budget=Budget(), timeout_s=_RUN_S, journal=Path(folder) / "run.jsonl")
        trial = run_once(task, options, observer, task.spec.default)
        if not trial.failure:
            observer.texts += _left_as_they_were(task, options)
    doubts = [Note(False, text) for text in observer.texts[:_SHOWN]]
    if more := observer.texts[_SHOWN:]:
        doubts.append(Note(False, f"{count_text(len(more), 'further finding')}: autotune space {space}"))
    if trial.failure:
        why = failed_default(task, trial)
        said = "; ".join(
            (f"{why.cause}: {trial.failure}" if why.cause else str(trial.failure), *why.helps[:1])
        )
        if trial.status in _OF_SIZES:
            said += f"; shapes, numbers and macros of {space.name} are guesses: give what your program has"
        return [*doubts, Note(False, f"the default does not run yet: {said}")]
    sizes = size_text(task.space.problem.sizes)
    return [*doubts, Note(True, f"the default took {trial.time_ms:.4g} ms at {sizes} on {task.device.name}")]


def run_on_cpu(space: Path) -> list[Note]:
    """Run the default of a space on the CPU, for no device of this machine takes it."""
    target = Target(space, ARCHITECTURE)
    report = run_on_host(target, _CPU_S, load_space(space).default, at_tiles=False)
    (run,) = report.runs
    if isinstance(run.outcome, Unchecked):
        return [Note(False, f"not run: {run.outcome.reason}")]
    if isinstance(run.outcome, Failure):
        return [Note(False, f"the default does not run yet: {run.outcome}")]
    sizes = count_text(run.sizes, "size")
    if report.uncompared:
        return [
            Note(
                True, f"the default runs on the CPU at {sizes}; not compared: {', '.join(report.uncompared)}"
            )
        ]
    return [Note(True, f"the default is right on the CPU, at {sizes}")]


def _left_as_they_were(task: TuningTask, options: Options) -> Iterator[str]:
    """A doubt for each output that begins as a constant and that a run leaves so in most places."""
    fills = {argument.name: argument.fill for argument in task.spec.arguments if argument.role == "inout"}
    constants = {name: fill.arguments[0] for name, fill in fills.items() if fill and fill.kind == "constant"}
    if not constants:
        return
    with open_run(task, replace(options, fresh=True), Observer()) as context:
        files = context.run_default(arrays_after_run, "the default", _RUN_S)
        arrays = {name: read_and_remove(path) for name, path in files.items()}
    for name, constant in constants.items():
        if name not in arrays:  # no launch takes it
            continue
        left, size = np.count_nonzero(arrays[name] == constant), arrays[name].size
        if left > _MOST_LEFT * size:
            yield (
                f"{left:,} of {size:,} elements of {name} are {constant} after a run, as before it: do grid "
                "and block cover all of them?"
            )


def compile_default(space: Path) -> list[Note]:
    """Compile the default of a space for an architecture of NVIDIA."""
    settings = Settings(count=1, compilers=1, binaries=default_folder())
    (report,) = survey(Target(space), [architecture(ARCHITECTURE)], settings)
    if why := report.failure or report.note:
        return [Note(False, f"not compiled: {first_error(why)}")]
    return [Note(True, f"the default compiles for {ARCHITECTURE}")]


class _Warnings(Observer):
    """Keeps the reasons to doubt a result."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def warn(self, text: str) -> None:
        """Keep it."""
        self.texts.append(text)
