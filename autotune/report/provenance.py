"""The origin of a search's times, for the head of a report."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.report.gather import Search


def provenance(search: Search) -> Iterator[tuple[str, str]]:
    """What there is to say of date, program, search and software, each with its name."""
    entry = search.entry.provenance if search.entry else None
    if entry is not None:
        yield "tuned", entry.tuned_at
        yield "by", f"autotune {entry.autotune}"
        yield "search", f"{entry.engine}, seed {entry.seed}, {entry.trials:,} trials"
    cached = {"driver": entry.driver, "runtime": entry.runtime, "compiler": entry.compiler} if entry else {}
    yield from ((name, text) for name, text in (cached | dict(search.runtime)).items() if text)
