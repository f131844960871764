"""The report of recorded searches, for scripts and notebooks."""

from __future__ import annotations

from functools import cached_property
from os import PathLike, fspath
from pathlib import Path

from autotune.core.text import count_text
from autotune.report.gather import gather
from autotune.report.page import framed, write_page
from autotune.report.search_page import report_html


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
