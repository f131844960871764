"""Runs named configurations, without a search: the landmarks of a space, or one configuration."""

from __future__ import annotations

import shlex
from dataclasses import replace

from autotune.core.records import Config
from autotune.core.trials import Trial
from autotune.devices import INTERPRETER
from autotune.errors import InputError
from autotune.searchers.base import evaluate
from autotune.space import lint_source, require_seen
from autotune.tuning.context import open_run
from autotune.tuning.first_trial import FirstTrial, warn_of_causes
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask, verify_all_command
from autotune.tuning.tuner import require_usable

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
        parameter, count = task.spec.parameters[0], len(task.space)
        command = shlex.join(("autotune", "search", str(task.spec.path), "--budget", str(count)))
        if task.address.backend == INTERPRETER:
            command = verify_all_command(task.spec.path, count)
        raise InputError(
            f"{task.spec.path}: no landmarks, which are named configurations; add one, for example "
            f"`landmarks: {{simple: {{{parameter.name}: {parameter.values[0]}}}}}`; "
            f"to verify all {count:,} valid ones: {command}"
        )
    require_usable(task)
    steps = {landmark.name: landmark.config for landmark in task.spec.landmarks}
    if tuned is not None:
        steps[TUNED] = tuned
    with open_run(task, options, observer, "ladder.jsonl") as context:
        first = FirstTrial(context)
        observer.started(task, len(steps), context.journal)
        first.run()
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
        warn_of_causes(observer, lint_source(task.space, task.source.text))
        return evaluate(context.evaluator, [config])[0]
