"""Runs named configurations, without a search: the landmarks of a space, or one configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from autotune.core.records import Config
from autotune.core.trials import Failure, Trial
from autotune.errors import InputError, SetupError
from autotune.evaluation.profiler import Profiler, find_profiler
from autotune.searchers.base import evaluate
from autotune.space import lint_source, require_seen
from autotune.tuning.context import open_run
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.shared_processes import open_processes
from autotune.tuning.task import TuningTask
from autotune.tuning.tuner import require_usable, try_default, warn_of

TUNED = "tuned best"  # the last step of a ladder


def ladder(
    task: TuningTask, options: Options, observer: Observer, tuned: Config | None = None
) -> dict[str, Trial]:
    """Verify and time every landmark in the order of the space file, then the tuned configuration, by name.

    A landmark that is invalid on the device gives an INVALID trial.

    Raises:
        InputError: The space has no landmarks, or an invalid default.
        SetupError: The default configuration fails.
        WriteError: The journal cannot be written.
    """
    if not task.spec.landmarks:
        parameter = task.spec.parameters[0]
        raise InputError(
            f"{task.spec.path}: no landmarks, which are named configurations; add one, for example "
            f"`landmarks: {{simple: {{{parameter.name}: {parameter.values[0]}}}}}`"
        )
    require_usable(task)
    steps = {landmark.name: landmark.config for landmark in task.spec.landmarks}
    if tuned is not None:
        steps[TUNED] = tuned
    with open_run(task, options, observer, "ladder.jsonl") as context:
        try_default(context, options, len(steps))
        return dict(zip(steps, evaluate(context.evaluator, list(steps.values())), strict=True))


def run_once(task: TuningTask, options: Options, observer: Observer, config: Config) -> Trial:
    """Verify and time one configuration in a fresh process, regardless of earlier runs.

    Raises:
        SetupError: The reference or the device cannot be used.
        WriteError: The journal cannot be written.
    """
    require_seen(task.space, task.source.text)
    with open_run(task, replace(options, fresh=True), observer, "run.jsonl") as context:
        observer.started(task, 1, context.journal)
        findings = lint_source(task.space, task.source.text)
        warn_of(observer, (finding for finding in findings if not finding.is_about_checks))
        return evaluate(context.evaluator, [config])[0]


def profile_once(
    task: TuningTask, options: Options, observer: Observer, config: Config, name: str, report: Path
) -> str:
    """Run the launches of a configuration under a profiler, `ncu` or `nsys`, and return its output.

    `report` is the file for the profiler's viewer.

    Raises:
        InputError: The profiler is not installed, or cannot profile the device.
        SetupError: The configuration does not compile or run, or the profiler fails.
    """
    program = find_profiler(name, task.address)
    fresh_options = replace(options, fresh=True)
    with (
        open_processes(task, fresh_options, observer) as processes,
        open_run(task, fresh_options, observer, "run.jsonl", processes=processes) as context,
    ):
        instance = context.maker.make(config)
        binary = context.pool.compile(instance).result()
        if isinstance(binary, Failure):
            raise SetupError(str(binary))
        context.worker.discard_child()
        profiler = Profiler(name, program, task.address, task.spec.reference, processes.variables)
        return profiler.run(binary, instance.workload, report)
