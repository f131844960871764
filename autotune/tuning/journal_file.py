"""The file that a run journals its trials to."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

from autotune.core.runs_folder import RUNS, problem_in_name
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask


def journal_file(task: TuningTask, options: Options, suffix: str = "jsonl") -> Path:
    """The journal that the options name, else the usual one."""
    return options.journal or default_journal(task, suffix)


def default_journal(task: TuningTask, suffix: str = "jsonl") -> Path:
    """The journal of a run whose options name none: one file per kernel, device and problem."""
    problem = task.space.problem
    content = problem_in_name(problem.sizes, problem.dtype, problem.data)
    measured = "".join(f".{word}" for word in astuple(task.spec.measure) if word)
    return RUNS / f"{task.spec.kernel}.{task.device.slug}.{content}{measured}.{suffix}"
