"""The result of a search, its trials and its report, for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from autotune.analysis.find_journal import find_journal
from autotune.cli.search_summary import known_text, result_text
from autotune.core.records import Config
from autotune.core.text import count_text
from autotune.core.trials import Objective, Status, Trial
from autotune.errors import AutotuneError, MissingExtra
from autotune.evaluation.journal import read_journal
from autotune.evaluation.scoring import measured_values
from autotune.report.gather import gather, gather_sources
from autotune.report.page import framed, write_page
from autotune.report.search_page import report_html
from autotune.tuning.result import SearchResult as Found
from autotune.tuning.served_best import KnownResult

if TYPE_CHECKING:
    import pandas


class Trials(tuple[Trial, ...]):
    """The trials of a search, in the order that they were tried."""

    _metrics: Sequence[Mapping[str, float]]

    def __new__(cls, trials: Iterable[Trial], metrics: Sequence[Mapping[str, float]] = ()) -> Self:
        """Take the trials, and the metrics of each if the space has some."""
        made = super().__new__(cls, trials)
        made._metrics = metrics or [{} for _ in made]
        return made

    def __repr__(self) -> str:
        return f"{count_text(len(self), 'trial')}; to_pandas() gives a table, rows() dictionaries"

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each trial: its parameters, its status, and what was measured."""
        return [
            {
                **trial.config,
                "status": trial.status.value,
                **measured_values(trial, trial.measurement if trial.status is Status.OK else None),
                **metrics,
                **({"objective": trial.score} if trial.objective is Objective.OWN else {}),
                "detail": trial.detail,
            }
            for trial, metrics in zip(self, self._metrics, strict=True)
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a table of pandas; raises MissingExtra where pandas is not installed."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("pandas", None) from None
        return pandas.DataFrame(self.rows())


def read_trials(journal: str | PathLike[str]) -> Trials:
    """Read the trials of a search that has run, in the order that they were tried.

    Args:
        journal: The journal file, or the name of a kernel, for its newest journal in `runs/`.

    Raises:
        InputError: There is no such file or journal.
        JournalError: The file is no journal, or is damaged.
    """
    _, trials, *_ = read_journal(find_journal(fspath(journal)))
    return Trials(trials)


class Result:
    """The outcome of `tune`; `found` has everything that is known of the search."""

    best: Config  # the fastest configuration that was verified, a mapping of parameters to values
    time_ms: float  # its median time in the last round
    speedup: float  # of the best over the default; 1 if that is not known
    cache_file: Path  # in which `best_config` finds the result

    def __init__(self, found: Found) -> None:
        self.found = found
        self.trials = Trials(found.trials, found.metrics)
        self.best, self.time_ms = found.winner.config, found.final.median_ms
        self.speedup, self.cache_file = found.speedup, found.cache_file

    def __repr__(self) -> str:
        return result_text(self.found)

    def _repr_html_(self) -> str:
        """A table of the best configuration, the summary of the command line, and the report's charts."""
        names = "".join(f"<th>{escape(name)}</th>" for name in (*self.best, "time"))
        values = (*map(str, self.best.values()), f"{self.time_ms:.4g} ms")
        cells = "".join(f"<td>{escape(value)}</td>" for value in values)
        table = f"<table><tr>{names}</tr><tr>{cells}</tr></table>"
        return f"{table}<pre>{escape(repr(self))}</pre>{self._charts()}"

    def _charts(self) -> str:
        """The report of the journal; empty if that is gone or damaged."""
        found = self.found
        with suppress(AutotuneError):
            gathered = gather_sources([found.journal], found.cache_root)
            searches = tuple(replace(search, spec=found.task.spec) for search in gathered.searches)
            return framed(report_html(replace(gathered, searches=searches)))
        return ""


class Known(Result):
    """The result of an earlier search, which `adopt` returns without a run: no trials, no `found`."""

    def __init__(self, known: KnownResult) -> None:
        self._known, self.trials, entry = known, Trials(()), known.entry
        self.best, self.time_ms, self.cache_file = entry.config, entry.time_ms, known.cache_file
        self.speedup = (entry.default_time_ms or entry.time_ms) / entry.time_ms

    def __repr__(self) -> str:
        return known_text(self._known)

    def _charts(self) -> str:
        return ""


class Report:
    """The report of `autotune report`: charts, filters and a table of trials. A notebook shows it inline."""

    def __init__(
        self,
        *sources: str | PathLike[str],
        cache: Path | None = None,
        space: str | PathLike[str] | None = None,
    ) -> None:
        """Read the trials; raises InputError and JournalError as `autotune report` does.

        Args:
            *sources: Files with recorded results, such as a journal, or kernels of the cache.
            cache: Folder of the cache, as `--cache`.
            space: The kernel's space file, as `--space`.
        """
        file = None if space is None else Path(space)
        self._gathered = gather([fspath(source) for source in sources], cache, file)

    @cached_property
    def html(self) -> str:
        """The whole page."""
        return report_html(self._gathered)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page; raises InputError if the file exists and is not a report."""
        write_page(Path(path), self.html)

    def __repr__(self) -> str:
        searches = self._gathered.searches
        trials = count_text(sum(len(search.trials) for search in searches), "trial")
        return f"Report({', '.join(search.source for search in searches)}: {trials})"

    def _repr_html_(self) -> str:
        return framed(self.html)
