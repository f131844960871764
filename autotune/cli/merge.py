"""Merge caches and journals of several machines; no result is lost, and the order does not matter."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autotune.analysis.merge import Merged, MergedRecord, merge_folders
from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.core.records import Entry
from autotune.core.text import count_text, problem_text

EXAMPLE = "autotune merge node1/cache node2/cache --into cache"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folders",
        metavar="DIR",
        nargs="+",
        type=Path,
        help="a cache, a folder of journals, or a folder with both; it is only read",
    )
    parser.add_argument(
        "--into",
        metavar="DIR",
        type=Path,
        required=True,
        help="where to write the merged files; results that are already there take part",
    )
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    merged = merge_folders(parsed.folders, parsed.into)
    emit(merged_json(merged) if parsed.json else merged_text(merged))


def merged_text(merged: Merged) -> str:
    """Counts, the result served among several, and the source used among several, with their files."""
    results = sum(len(union.record.entries) for union in merged.records.values())
    lines = [
        f"{merged.into}: {count_text(results, 'result')} in {count_text(len(merged.records), 'record')}, "
        f"{count_text(sum(merged.journals.values()), 'row')} in {count_text(len(merged.journals), 'journal')}"
    ]
    for place, union, entry in _contested(merged):
        rivals = "; ".join(_result_text(union, rival) for rival in entry.rivals)
        problem = f"{place}, {problem_text(entry.sizes, entry.dtype, entry.data)}"
        lines.append(f"several results for {problem}: {_result_text(union, entry)} is served, not {rivals}")
    for place, union in merged.records.items():
        for file, properties in union.others.items():
            source = f"; the source is {union.record.source}" * ("source" in properties)
            lines.append(
                f"differing {place}: {', '.join(properties)} taken from {union.newest}, not {file}{source}"
            )
        for file, source in union.left_out.items():
            lines.append(
                f"left out {place}: the source {source}, which {file} names, is outside the cache's project; "
                "a program that needs it names it: load_kernel(source=)"
            )
    lines += [f"skipped {path}: neither results nor a journal" for path in merged.ignored]
    return "\n".join(lines)


def merged_json(merged: Merged) -> dict[str, Any]:
    return {
        "into": str(merged.into),
        "records": {place: len(union.record.entries) for place, union in merged.records.items()},
        "journals": merged.journals,
        "several": [
            {
                "record": place,
                "sizes": dict(entry.sizes),
                "dtype": entry.dtype,
                "served": _result_json(union, entry),
                "rivals": [_result_json(union, rival) for rival in entry.rivals],
            }
            for place, union, entry in _contested(merged)
        ],
        "differing": [
            {
                "record": place,
                "properties": list(properties),
                "as_in": str(union.newest),
                "not_as_in": str(file),
                "source": union.record.source,
            }
            for place, union in merged.records.items()
            for file, properties in union.others.items()
        ],
        "left_out": [
            {"record": place, "file": str(file), "source": source}
            for place, union in merged.records.items()
            for file, source in union.left_out.items()
        ],
        "ignored": [str(path) for path in merged.ignored],
    }


def _contested(merged: Merged) -> Iterator[tuple[str, MergedRecord, Entry]]:
    for place, union in merged.records.items():
        yield from ((place, union, entry) for entry in union.record.entries if entry.rivals)


def _result_text(merged: MergedRecord, entry: Entry) -> str:
    origin = entry.provenance
    tried = f"{count_text(origin.trials, 'trial')} of {origin.engine}"
    return f"{entry.time_ms:.4g} ms ({tried}, {origin.tuned_at}, in {merged.origin(entry)})"


def _result_json(merged: MergedRecord, entry: Entry) -> dict[str, Any]:
    origin = entry.provenance
    return {
        "config": dict(entry.config),
        "time_ms": entry.time_ms,
        "trials": origin.trials,
        "engine": origin.engine,
        "tuned_at": origin.tuned_at,
        "host": origin.host,
        "file": str(merged.origin(entry)),
    }
