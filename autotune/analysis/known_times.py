"""The configurations of a problem that were timed before."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from autotune.core.records import Config
from autotune.errors import InputError
from autotune.evaluation.journal import read_trials
from autotune.serving.cache import read_roots
from autotune.tuning.journal_file import default_journal
from autotune.tuning.task import TuningTask


def known_times(task: TuningTask, cache: Path | None) -> list[tuple[Config, float]]:
    """Configurations with their times in ms: those of the usual journal, else those of the cache."""
    path = default_journal(task)
    with suppress(InputError):
        trials = read_trials(path) if path.is_file() else []
        if found := [(trial.config, trial.time_ms) for trial in trials if trial.time_ms is not None]:
            return found
    for root in read_roots(cache):
        entry = task.cached_entry(root)
        if entry is not None:
            return list(entry.measured)
    return []
