"""A task with its objective and its journal: what a run asks of its task, once and before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

from autotune.core.runs_folder import RUNS, problem_in_name
from autotune.core.trials import Objective
from autotune.evaluation.identity import journal_header, journal_notes
from autotune.evaluation.scoring import Scoring
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask

VERIFICATION = 6  # raised whenever verification gets stricter: journals of older versions are refused


@dataclass(frozen=True, eq=False)
class JournaledTask:
    """A task, what its run minimizes, and the journal of its trials."""

    task: TuningTask
    scoring: Scoring
    journal_path: Path  # the file of the trials
    header: Mapping[str, str]  # all that every trial in it depends on
    notes: Mapping[str, str]  # what a hash in the header covers, in words


def with_journal(task: TuningTask, options: Options, suffix: str = "jsonl") -> JournaledTask:
    """The task with its journal; its name ends with the suffix unless the options name one.

    Raises InputError for an objective that reads unknown names.
    """
    spec, source = task.spec, task.source
    journal = options.journal or default_journal(task, suffix)
    header = {**task.environment, "verification": str(VERIFICATION)}
    # results of a function are a part of every row's key
    reference = "function" if spec.functions.reference is not None else task.reference.sha256
    header |= journal_header(spec, task.space.problem, source.sha256, reference, source.hidden)
    notes = journal_notes(spec)
    own = options.own_objective if options.objective else task.space.objective
    objective = options.objective or (Objective.OWN if own else Objective.TIME)
    return JournaledTask(task, Scoring(task.space, objective, own), journal, header, notes)


def default_journal(task: TuningTask, suffix: str = "jsonl") -> Path:
    """The journal of a run whose options name none: one file per kernel, device and problem."""
    problem = task.space.problem
    content = problem_in_name(problem.sizes, problem.dtype, problem.data)
    measured = "".join(f".{word}" for word in astuple(task.spec.measure) if word)
    return RUNS / f"{task.spec.kernel}.{task.device.slug}.{content}{measured}.{suffix}"
