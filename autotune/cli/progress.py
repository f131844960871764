"""Progress of long work on stderr: a bar on a terminal, a plain line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from autotune.analysis.compile_survey import Checked
from autotune.core.trials import Status, Trial
from autotune.evaluation.journal import Journal
from autotune.hardware.architectures import Architecture
from autotune.tuning.task import TuningTask

_LINE_INTERVAL_S = 10.0


class _Progress:
    """Counts what is done, and shows it as a bar or as lines."""

    _bar: Progress | None = None
    _done: int
    _total: int | None
    _began: float
    _last_line: float

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _open(self, total: int | None) -> None:
        """Start counting from zero, with a bar on a terminal."""
        self._close()
        self._done, self._total = 0, total
        self._began = self._last_line = time.monotonic()
        if sys.stderr.isatty():
            self._bar = Progress(
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[state]}"),
                TextColumn("elapsed"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True, highlight=False, markup=False),
            )
            self._bar.add_task("", total=total, state="")
            self._bar.start()

    def _show(self, state: str) -> None:
        """Show one more as done, with `state` as a text beside it."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], advance=1, total=self._total, state=state)
        elif time.monotonic() - self._last_line >= _LINE_INTERVAL_S:
            self._last_line = time.monotonic()
            left = "" if self._total is None else f", {(self._total - self._done) / self._rate:.0f} s left"
            self._say(f"{self._done}/{self._total or '?'} {state}{left}")

    @property
    def _rate(self) -> float:
        return self._done / max(time.monotonic() - self._began, 1e-3)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class SearchProgress(_Progress):
    """Observer of a search: shows done and total, best so far, rate, time left and failures by kind."""

    def __init__(self) -> None:
        self._best_ms: float | None = None
        self._failures: Counter[str] = Counter()

    def started(self, task: TuningTask, total: int | None, journal: Journal, note: str = "") -> None:
        """Say what will be searched and where trials go, and open the bar."""
        space = task.space
        self._say(
            f"{task.spec.kernel} on {task.device.name} ({task.address}): {len(space):,} valid of "
            f"{space.cartesian:,} configurations; trials go to {journal.path}"
        )
        if note:
            self._say(note)
        if journal.warning:
            self._say(f"warning: {journal.warning}")
        self._open(total)

    def tried(self, trial: Trial) -> None:
        """Count one trial."""
        self._done += 1
        if self._total is not None:  # the cached configuration is evaluated in addition
            self._total = max(self._total, self._done)
        if trial.status is not Status.OK:
            self._failures[trial.status.value] += 1
        elif trial.time_ms is not None and (self._best_ms is None or trial.time_ms < self._best_ms):
            self._best_ms = trial.time_ms
        best = "none yet" if self._best_ms is None else f"{self._best_ms:.4g} ms"
        failures = "".join(f", {count} {kind}" for kind, count in self._failures.most_common())
        self._show(f"best {best}, {self._rate:.1f}/s{failures}")

    def waiting(self, what: str) -> None:
        """Say what takes long."""
        self._say(f"{what} ...")

    def last_round(self, count: int) -> None:
        """Close the bar and say what the last round does."""
        self._close()
        self._say(f"last round: {count} configurations on fresh inputs, timed in turns in a fresh process")


class SurveyProgress(_Progress):
    """Observer of a survey: shows done and total, rate and time left for each architecture."""

    def started(self, architecture: Architecture, total: int) -> None:
        """Open the bar for an architecture."""
        self._name, self._failed, self._cached = architecture.name, 0, 0
        self._open(total)

    def checked(self, result: Checked) -> None:
        """Count one configuration."""
        self._done += 1
        self._failed += result.failure is not None
        self._cached += result.cached
        self._show(
            f"{self._name}: {self._rate:.1f}/s, {self._failed} not feasible, {self._cached} compiled before"
        )
