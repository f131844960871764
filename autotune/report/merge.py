"""What `autotune merge` prints: what was united, and which results contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from autotune.merge_files import Merged
from autotune.model import Entry
from autotune.report.tables import sizes_text


def merged_text(merged: Merged) -> str:
    """Counts, and a line for each problem with several results, the one that is served first."""
    results = sum(len(record.entries) for record in merged.records.values())
    lines = [
        f"{merged.into}: {results:,} results in {len(merged.records):,} records, "
        f"{sum(merged.journals.values()):,} rows in {len(merged.journals):,} journals"
    ]
    for place, entry in _contested(merged):
        rivals = "; ".join(map(_result_text, entry.rivals))
        problem = f"{place}, {sizes_text(entry.sizes)}, {entry.dtype}"
        lines.append(f"several {problem}: {_result_text(entry)} is served before {rivals}")
    lines += [f"left    {path}: neither results nor a journal" for path in merged.ignored]
    return "\n".join(lines)


def merged_json(merged: Merged) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "into": str(merged.into),
        "records": {place: len(record.entries) for place, record in merged.records.items()},
        "journals": merged.journals,
        "several": [
            {
                "record": place,
                "sizes": dict(entry.sizes),
                "dtype": entry.dtype,
                "served": _result_json(entry),
                "rivals": [_result_json(rival) for rival in entry.rivals],
            }
            for place, entry in _contested(merged)
        ],
        "ignored": [str(path) for path in merged.ignored],
    }


def _contested(merged: Merged) -> Iterator[tuple[str, Entry]]:
    for place, record in merged.records.items():
        yield from ((place, entry) for entry in record.entries if entry.rivals)


def _result_text(entry: Entry) -> str:
    origin = entry.provenance
    return f"{entry.time_ms:.4g} ms ({origin.trials:,} trials of {origin.engine}, {origin.tuned_at})"


def _result_json(entry: Entry) -> dict[str, Any]:
    origin = entry.provenance
    return {
        "config": dict(entry.config),
        "time_ms": entry.time_ms,
        "trials": origin.trials,
        "engine": origin.engine,
        "tuned_at": origin.tuned_at,
        "host": origin.host,
    }
