"""The state of a search, which its process writes to a file next to the journal for others to read."""

from __future__ import annotations

import fcntl
import time
from contextlib import suppress
from pathlib import Path

from autotune.core.text import shortened
from autotune.processes.files import open_to_append

TOLD_EACH_S = 1.0
_FRESH_S = 3.0  # a younger file is of a search that runs
_MOST_BYTES = 1_000


def tell_state(journal: Path, place: str, left: str) -> None:
    """Write a search's progress and the time left; do nothing if the folder cannot be written."""
    with suppress(OSError), open_to_append(_file(journal)) as file:
        file.truncate(0)  # who reads now hears only that the search runs
        file.write(f"{place}\n{left}".encode())


def end_state(journal: Path) -> None:
    """Remove the state: the search has ended."""
    with suppress(OSError):
        _file(journal).unlink(missing_ok=True)


def search_state(journal: Path, *, is_concluded: bool) -> str:
    """The state of a journal's search in a sentence: it runs, is done, or ended before its end.

    The journal `is_concluded` if its last round came after all trials.
    """
    place, left, age_s = _told(journal)
    if age_s < _FRESH_S or _is_held(journal):
        return ", ".join(filter(None, ("Running" if not place else f"Running: {place}", left)))
    again = "To resume it, run the same search again"
    if place:
        return f"The search's process has died: {place}. {again}"
    return "Done" if is_concluded else f"Ended before its last round. {again}"


def _file(journal: Path) -> Path:
    return journal.with_name(f".{journal.name}.state")


def _told(journal: Path) -> tuple[str, str, float]:
    """The stage and the time left that were written last, and how long ago."""
    try:
        with _file(journal).open(encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST_BYTES)
        age_s = time.time() - _file(journal).stat().st_mtime
    except OSError:
        return "", "", float("inf")
    place, _, left = text.partition("\n")
    return shortened(place), shortened(left), age_s


def _is_held(journal: Path) -> bool:
    """True if a process has the journal open to write, which locks it."""
    try:
        with journal.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
