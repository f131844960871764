"""Merges new results of a kernel with its older ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter

from autotune.core.records import Entry, KernelRecord, VariantTable


def replaced(old: KernelRecord, new: KernelRecord) -> tuple[Entry, ...]:
    """The old entries for problems that have new ones."""
    problems = [entry.problem for entry in new.entries]
    return tuple(entry for entry in old.entries if entry.problem in problems)


def merged(old: KernelRecord, new: KernelRecord) -> KernelRecord:
    """The new record with the old entries for other problems, and the old tables for other ranges."""
    entries = {entry.problem: entry for entry in old.entries}
    for entry in new.entries:
        before = entries.get(entry.problem)
        if before is not None:
            entry = replace(_with_measured(entry, before), rivals=before.rivals)
        entries[entry.problem] = entry
    return replace(
        new, entries=tuple(entries[key] for key in sorted(entries)), variants=merge_variants((old, new))
    )


def merge_variants(records: Iterable[KernelRecord]) -> tuple[VariantTable, ...]:
    """The tables of several records of a kernel; of tables for the same range, the last one."""
    tables = {table.range: table for record in records for table in record.variants}
    return tuple(tables[key] for key in sorted(tables))


def _with_measured(entry: Entry, before: Entry) -> Entry:
    """A result with the times that an earlier result of the same problem adds.

    The entry's own times take precedence. Earlier times are added only if source, inputs, launches and timing
    conditions are unchanged.
    """
    now, then = entry.provenance, before.provenance
    is_same_space = now.space_sha256 == then.space_sha256
    is_same_workload = now.workload_sha256 == then.workload_sha256 != ""
    conditions = [(origin.cache_state, origin.launch_mode) for origin in (now, then)]
    if conditions[0] != conditions[1]:
        return entry
    if now.source_sha256 != then.source_sha256 or not (is_same_space or is_same_workload):
        return entry
    times_ms = {before.config: before.time_ms, **dict(before.measured), **dict(entry.measured)}
    times_ms.pop(entry.config, None)
    return replace(entry, measured=tuple(sorted(times_ms.items(), key=itemgetter(1))))
