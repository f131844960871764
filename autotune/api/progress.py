"""Progress of a search in a notebook: one output that is written over, as the bar on a terminal is."""

from __future__ import annotations

import sys
from typing import Any

from autotune.cli.progress import SearchProgress, Verbosity
from autotune.evaluation.ledger import OnTrial

_REDRAWN_EACH_S = 1.0


def shown_progress(
    callback: OnTrial | None = None, verbosity: Verbosity = Verbosity.NORMAL
) -> SearchProgress:
    """The progress of searches; in a notebook's kernel, which shows what is displayed, in its output."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    is_notebook = type(shell).__name__ == "ZMQInteractiveShell"
    return (NotebookProgress if is_notebook else SearchProgress)(verbosity, callback=callback)


class NotebookProgress(SearchProgress):
    """Shows progress in the output of a notebook's cell, below what was said."""

    def __init__(self, verbosity: Verbosity = Verbosity.NORMAL, *, callback: OnTrial | None = None) -> None:
        super().__init__(verbosity, callback=callback)
        self._display: Any = None
        self._said: list[str] = []

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        self._write("")

    def _say(self, text: str, *, always: bool = False) -> None:
        self._said.append(text)
        self._changed()

    def _say_lines(self) -> None:
        """The line is always there: move its clock on."""
        while not self._ended.wait(_REDRAWN_EACH_S):
            self._changed()

    def _changed(self) -> None:
        self._write(self._text())

    def _write(self, progress: str) -> None:
        from IPython.display import display  # at hand in a notebook

        content = {"text/plain": "\n".join(filter(None, (*self._said, progress)))}
        if self._display is None:
            self._display = display(content, raw=True, display_id=True)
        else:
            self._display.update(content, raw=True)
