"""Progress of long work: a bar on a terminal, a plain line now and then elsewhere. Goes to stderr."""

from __future__ import annotations

import sys
import time
from collections import Counter
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from autotune.feasible import Checked
from autotune.journal import Journal
from autotune.occupancy import Architecture
from autotune.targets import Bound
from autotune.trials import Status, Trial

_LINE_INTERVAL_S = 10.0


class SearchProgress:
    """Shows done/total, best so far, rate, time left and failures by kind; an observer of a session."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._done = 0
        self._total: int | None = None
        self._best_ms: float | None = None
        self._failures: Counter[str] = Counter()
        self._began = self._last_line = time.monotonic()

    def __enter__(self) -> SearchProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_bar()

    def started(self, bound: Bound, total: int | None, journal: Journal, note: str = "") -> None:
        """Say what is about to happen, and open the bar."""
        space = bound.space
        self._say(
            f"{bound.spec.kernel} on {bound.device.name} ({bound.address}): {len(space):,} valid of "
            f"{space.cartesian:,} configurations; trials go to {journal.path}"
        )
        if note:
            self._say(note)
        if journal.warning:
            self._say(f"warning: {journal.warning}")
        self._total = total
        self._began = self._last_line = time.monotonic()
        self._bar = _bar(total)

    def tried(self, trial: Trial) -> None:
        """Count one trial."""
        self._done += 1
        if self._total is not None:  # what the cache holds takes part besides
            self._total = max(self._total, self._done)
        if trial.status is not Status.OK:
            self._failures[trial.status.value] += 1
        elif trial.time_ms is not None and (self._best_ms is None or trial.time_ms < self._best_ms):
            self._best_ms = trial.time_ms
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], advance=1, total=self._total, state=self._state())
        elif time.monotonic() - self._last_line >= _LINE_INTERVAL_S:
            self._last_line = time.monotonic()
            self._say(f"{self._done}/{self._total or '?'} {self._state()}{self._left()}")

    def last_round(self, count: int) -> None:
        """Close the bar."""
        self._stop_bar()
        self._say(f"last round: {count} configurations on fresh inputs, timed in turns in a fresh process")

    def _state(self) -> str:
        best = "none yet" if self._best_ms is None else f"{self._best_ms:.4g} ms"
        rate = self._done / max(time.monotonic() - self._began, 1e-3)
        failures = "".join(f", {count} {kind}" for kind, count in self._failures.most_common())
        return f"best {best}, {rate:.1f}/s{failures}"

    def _left(self) -> str:
        """The time left at the rate so far, where the end is known."""
        if self._total is None:
            return ""
        elapsed_s = time.monotonic() - self._began
        return f", {elapsed_s / self._done * max(0, self._total - self._done):.0f} s left"

    def _stop_bar(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class SurveyProgress:
    """Shows done/total, rate and time left for each architecture; an observer of a survey."""

    def __init__(self) -> None:
        self._bar: Progress | None = None

    def __enter__(self) -> SurveyProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def started(self, architecture: Architecture, total: int) -> None:
        """Open the bar of an architecture."""
        if self._bar is not None:
            self._bar.stop()
        self._name, self._total, self._done, self._failed, self._cached = architecture.name, total, 0, 0, 0
        self._began = self._last_line = time.monotonic()
        self._bar = _bar(total)

    def checked(self, result: Checked) -> None:
        """Count one configuration."""
        self._done += 1
        self._failed += result.failure is not None
        self._cached += result.cached
        now = time.monotonic()
        rate = self._done / max(now - self._began, 1e-3)
        state = f"{self._name}: {rate:.1f}/s, {self._failed} not feasible, {self._cached} compiled before"
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], advance=1, state=state)
        elif now - self._last_line >= _LINE_INTERVAL_S:
            self._last_line = now
            left_s = (self._total - self._done) / rate
            print(f"{self._done}/{self._total} {state}, {left_s:.0f} s left", file=sys.stderr, flush=True)


def _bar(total: int | None) -> Progress | None:
    """A bar on a terminal; None elsewhere."""
    if not sys.stderr.isatty():
        return None
    bar = Progress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TextColumn("elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False),
    )
    bar.add_task("", total=total, state="")
    bar.start()
    return bar
