"""Progress of long work on stderr: a line that is rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from enum import Enum
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.cells import set_cell_size
from rich.console import Console
from rich.live import Live
from rich.text import Text

from autotune.cli.output import say
from autotune.core.escapes import terminal_text
from autotune.core.stages import Stage
from autotune.core.text import count_text
from autotune.core.trials import Status, Trial
from autotune.evaluation.search_state import TOLD_EACH_S, end_state, tell_state
from autotune.tuning.observer import Observer

if TYPE_CHECKING:  # these load numpy, and progress should show from the start
    from autotune.cli.forecast import Forecast
    from autotune.evaluation.journal import Journal
    from autotune.evaluation.ledger import OnTrial
    from autotune.tuning.task import TuningTask

_LINE_INTERVAL_S = 10.0  # without a terminal: between lines
_REFRESHES_PER_S = 4  # few, because the device may be this CPU
_BAR_CELLS = 12


class Verbosity(Enum):
    """The amount of output on stderr."""

    QUIET = "quiet"  # warnings only
    NORMAL = "normal"
    VERBOSE = "verbose"  # also each stage with its time, and each trial


class SearchProgress(Observer):
    """Shows the present stage with its time, and of a search done and total, best so far and failures."""

    def __init__(
        self,
        verbosity: Verbosity = Verbosity.NORMAL,
        *,
        first_line_s: float = 5.0,
        callback: OnTrial | None = None,
    ) -> None:
        """Show nothing yet; a file or a pipe gets the first line after a while, `callback` each trial."""
        self._verbosity, self._first_line_s, self._callback = verbosity, first_line_s, callback
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._live: Live | None = None
        self._ended, self._lines = Event(), Thread(target=self._say_lines, daemon=True)
        self._telling, self._teller = Lock(), Thread(target=self._keep_telling, daemon=True)
        self._stage: Stage | None = None
        self._began = self._stage_began = self._stage_told = time.monotonic()
        self._done = 0
        self._total: int | None = None  # not known
        self._best_ms: float | None = None
        self._known: frozenset[str] = frozenset()  # keys that the journal had before
        self._has_new = True  # whether one was tried that it had not
        self._forecast: Forecast | None = None  # once trials are counted
        self._failures: Counter[str] = Counter()
        self._journals: dict[Path, frozenset[str]] = {}  # that were named, with the keys that they had
        self._journal: Path | None = None  # of the search that runs
        self._trials = ""  # how many were tried, in words

    def __enter__(self) -> Self:
        """Begin to show progress, on a terminal at once, and to tell it to others."""
        self._teller.start()
        if self._verbosity is Verbosity.QUIET:
            return self
        self.stage(Stage("starting"))
        if sys.stderr.isatty() and not self._console.is_dumb_terminal:
            self._live = Live(
                get_renderable=self._renderable,
                console=self._console,
                refresh_per_second=_REFRESHES_PER_S,
                transient=True,
                redirect_stdout=sys.stdout.isatty(),  # meanwhile, a file gets plain lines
            )
            self._live.start(refresh=True)
        else:
            self._lines.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_stage()
        self._ended.set()
        if self._lines.is_alive():
            self._lines.join()
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._tell_of(None)

    def started(self, task: TuningTask, total: int | None, journal: Journal, note: str = "") -> None:
        """Print the target and the journal, and count trials from now on."""
        from autotune.cli.forecast import Forecast  # these load numpy, and progress should show before that
        from autotune.cli.texts import space_problem

        space = task.space
        if journal.path not in self._journals:  # a sweep comes back to its sizes
            self._journals[journal.path] = frozenset(journal.trials)
            self._say(
                f"{task.spec.kernel} on {task.device.name} ({task.address}), {space_problem(space)}: "
                f"{len(space):,} valid of {space.cartesian:,} configurations"
            )
            known = count_text(len(journal.trials), "trial")
            self._say(
                f"continues {known} of {journal.path}" if journal.trials else f"trials go to {journal.path}"
            )
        if note:
            self._say(note)
        if journal.warning:
            self.warn(journal.warning)
        self._best_ms = None
        self._known = self._journals[journal.path]
        self._has_new = not self._known
        self._failures.clear()
        self._count(total)
        self._forecast = Forecast(total, self._began)
        self._trials = ""
        self._tell_of(journal.path)

    def warn(self, text: str) -> None:
        """Print a reason to doubt the result."""
        self._say(f"warning: {text}", always=True)

    def tried(self, trial: Trial) -> None:
        """Count one trial."""
        self._done += 1
        self._has_new |= trial.key not in self._known
        if self._forecast is not None:
            self._forecast.tried(trial.cost_s, time.monotonic())
        if self._total is not None:  # the cached configuration is evaluated in addition
            self._total = max(self._total, self._done)
        self._trials = f"{self._done}{f' of {self._total}' if self._total else ''} trials"
        if trial.status is not Status.OK:
            self._failures[trial.status.value] += 1
        elif trial.time_ms is not None and (self._best_ms is None or trial.time_ms < self._best_ms):
            self._best_ms = trial.time_ms
        self._changed()
        if self._verbosity is Verbosity.VERBOSE:
            time_text = trial.status.value if trial.time_ms is None else f"{trial.time_ms:.4g} ms"
            self._say(f"{self._done} {time_text}: {trial.config}")
        if self._callback is not None:
            self._callback(trial)

    def last_round(self, count: int) -> None:
        """Describe the last round, and show only its stages."""
        finalists = count_text(count, "configuration")
        why = "" if self._has_new else "; all trials were known, and only this round is run"
        self._say(f"last round: {finalists} verified again and timed in turns{why}")
        self._count(None)
        if self._forecast is not None:
            self._forecast.last_round(count, time.monotonic())
        self._best_ms = None  # best of the search; another may be best in turns

    def over(self) -> None:
        """Show only the stages of what follows, with their own time left."""
        self._count(None)
        self._forecast = None

    def stage(self, stage: Stage) -> None:
        """Show the present stage."""
        if self._forecast is not None:
            self._forecast.stage(stage, time.monotonic())
        if self._stage is None or stage.name != self._stage.name:
            self._end_stage()
            self._stage_began = time.monotonic()
        self._stage, self._stage_told = stage, time.monotonic()
        self._changed()

    def left_s(self) -> float | None:
        """The predicted time left of the whole search; None before it can be known."""
        return None if self._forecast is None else self._forecast.left_s(time.monotonic())

    def _end_stage(self) -> None:
        if self._verbosity is Verbosity.VERBOSE and self._stage is not None:
            self._say(f"{self._stage}: {time.monotonic() - self._stage_began:.1f} s")
        self._stage = None

    def _count(self, total: int | None) -> None:
        """Count trials from zero; None if their number is not known."""
        self._done, self._total, self._began = 0, total, time.monotonic()

    def _tell_of(self, journal: Path | None) -> None:
        """Tell the state of another journal's search from now on."""
        with self._telling:
            if self._journal not in (None, journal):
                end_state(self._journal)
            self._journal = journal
        self._tell()

    def _keep_telling(self) -> None:
        while not self._ended.wait(TOLD_EACH_S):
            self._tell()

    def _tell(self) -> None:
        with self._telling:
            if self._journal is not None:
                place = filter(None, (self._trials, str(self._stage or "")))
                tell_state(self._journal, ", ".join(place), self._left())

    def _line(self) -> str:
        """Trials and stage in one line, the least important part last."""
        counted = f"{self._done}/{self._total or '?'}" if self._done else ""
        passed = _clock(time.monotonic() - (self._began if self._done else self._stage_began))
        best = "" if self._best_ms is None else f"best so far {self._best_ms:.4g} ms"
        failures = (f"{count} {kind}" for kind, count in self._failures.most_common())
        parts = (counted, str(self._stage or ""), passed, self._left(), best, *failures)
        return ", ".join(filter(None, parts))

    @property
    def _share(self) -> float | None:
        """The finished part; None if it is not counted."""
        if self._total:
            return self._done / self._total
        return self._stage.done / self._stage.total if self._stage and self._stage.total else None

    def _left(self) -> str:
        """The time left of the search, else of the stage; empty if it cannot be known."""
        share, now_s = self._share, time.monotonic()
        left_s = None
        if self._forecast is not None:
            left_s = self.left_s()
        elif self._stage and self._stage.left_s is not None:
            left_s = self._stage.left_s - (now_s - self._stage_told)
        elif share and share < 1:
            left_s = (now_s - self._stage_began) * (1 / share - 1)
        return "" if left_s is None or left_s < 0 else f"{_clock(left_s)} left"

    def _changed(self) -> None:
        """Called when there is something new to show, for displays that are not redrawn automatically."""

    def _text(self) -> str:
        """A bar, if something can be counted, and the present stage."""
        share = self._share
        filled = round(_BAR_CELLS * min(1.0, share or 0.0))
        bar = "" if share is None else "━" * filled + " " * (_BAR_CELLS - filled) + " "
        return bar + self._line()

    def _renderable(self) -> Text:
        line, width = terminal_text(self._text()), self._console.width - 1
        return Text(line if len(line) <= width else set_cell_size(line, width - 1) + "…", no_wrap=True)

    def _say_lines(self) -> None:
        """Without a terminal: print the stage if it takes long."""
        wait_s = self._first_line_s
        while not self._ended.wait(wait_s):
            self._say(self._line())
            wait_s = _LINE_INTERVAL_S

    def _say(self, text: str, *, always: bool = False) -> None:
        """Print lines above the progress; a quiet run prints only those marked `always`."""
        if self._live is not None:
            self._console.print(terminal_text(text))
        elif always or self._verbosity is not Verbosity.QUIET:
            say(text)


def _clock(seconds: float) -> str:
    """A duration as on a clock: `0:07`, `1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
