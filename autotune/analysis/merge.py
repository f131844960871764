"""Merging caches and journals of several machines as unions of sets: order and repetition do not matter.

All results for a problem on a device model are kept; the whole set decides which of them is served.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import NoReturn

from autotune.core.json_values import is_name
from autotune.core.records import DeviceInfo, Entry, KernelRecord, ProblemKey
from autotune.core.trials import WRONG
from autotune.errors import CacheError, InputError, JournalError
from autotune.evaluation.journal import locked_journal, parse_journal
from autotune.interop.journals import is_journal
from autotune.processes.files import locked, replace_file
from autotune.runtime.trust import is_in_project
from autotune.serving.cache import DEVICE_FILE, OBJECTIVE, read_device, read_record, same_device
from autotune.serving.cache_schema import device_text, entry_text, record_text
from autotune.serving.miss_log import FILE as MISSES
from autotune.serving.miss_log import read_misses
from autotune.serving.record_merge import merge_variants

_WRONG = tuple(status.value for status in WRONG)


def merge_records(
    records: Sequence[KernelRecord], *, by_time: bool = True, left_out: Collection[str] = ()
) -> KernelRecord:
    """Merge at least one record of a kernel on a device; all but the results comes from the newest record.

    `by_time` is False if the objective of the searches was not the time. Of the sources, those that are left
    out are not taken; the newest other one is.
    """
    ordered = _newest_first(records)
    base = ordered[0]
    by_problem: dict[ProblemKey, dict[str, Entry]] = {}
    for record in records:
        for entry in record.entries:
            results = by_problem.setdefault(entry.problem, {})
            for result in (replace(entry, rivals=()), *entry.rivals):
                results[entry_text(result)] = result
    return replace(
        base,
        source=next((record.source for record in ordered if record.source not in left_out), ""),
        entries=tuple(_with_rivals(by_problem[problem], by_time) for problem in sorted(by_problem)),
        variants=merge_variants(sorted(records, key=lambda record: (record.tuned_at, record_text(record)))),
    )


def _newest_first(records: Iterable[KernelRecord]) -> list[KernelRecord]:
    return sorted(
        records, key=lambda record: (record.tuned_at, record_text(replace(record, entries=()))), reverse=True
    )


def merge_devices(devices: Iterable[DeviceInfo]) -> DeviceInfo:
    """Of several descriptions of a device model, the one with the newest driver and runtime."""
    return max(
        devices, key=lambda device: (_version(device.driver), _version(device.runtime), device_text(device))
    )


def merge_rows(rows: Iterable[str]) -> list[str]:
    """Merge rows of journals with the same header, each once, in an order that depends on the rows only.

    The later row of a configuration counts: a wrong result comes last, before it a success, the one with the
    most samples last.
    """
    return sorted(set(rows), key=_row_order)


def _with_rivals(results: dict[str, Entry], by_time: bool) -> Entry:
    """The result to serve, with all others as its rivals."""
    served = _choose(results, by_time)
    rivals = tuple(results[text] for text in sorted(results) if text != served)
    return replace(results[served], rivals=rivals)


def _choose(results: dict[str, Entry], by_time: bool) -> str:
    """The text of the result to serve.

    Prefer searches to probes and the newest source, then the fastest; of those that the measurements cannot
    tell from the fastest, take the one from the most trials.
    """
    texts = [text for text in results if not results[text].provenance.is_probe] or list(results)

    def age(text: str) -> tuple[str, str]:
        return results[text].provenance.tuned_at, text

    source = results[max(texts, key=age)].provenance.source_sha256
    texts = [text for text in texts if results[text].provenance.source_sha256 == source]
    if by_time:
        fastest = results[min(texts, key=lambda text: (results[text].time_ms, text))]
        texts = [text for text in texts if results[text].interval_ms[0] <= fastest.interval_ms[1]]
    return max(texts, key=lambda text: (results[text].provenance.trials, *age(text)))


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _row_order(row: str) -> tuple[bool, str, int, int, str]:
    data = json.loads(row)
    if "trial" not in data:
        return True, "", 0, 0, row
    trial = data["trial"]
    rank = 2 if trial["status"] in _WRONG else int(trial["status"] == "ok")
    rank -= bool(trial.get("by_machine"))
    samples = len((trial.get("measurement") or {}).get("samples_ms", ()))
    return False, str(trial["key"]), rank, samples, row


@dataclass
class _Found:
    """The contents of folders, by path inside the folder."""

    devices: dict[Path, list[DeviceInfo]] = field(default_factory=dict)
    records: dict[Path, dict[Path, KernelRecord]] = field(default_factory=dict)  # each by its file, too
    journals: dict[Path, dict[str, list[str]]] = field(default_factory=dict)  # rows by header
    misses: dict[Path, set[str]] = field(default_factory=dict)
    ignored: list[Path] = field(default_factory=list)


@dataclass(frozen=True)
class MergedRecord:
    """A record that a merge has written, and whose it is."""

    record: KernelRecord
    origins: Mapping[str, Path]  # the files from which its results come, by the text of each
    newest: Path  # the file whose source, launches and other properties of the kernel count
    # other files, each with the names of the properties in which it differs from that one
    others: Mapping[Path, tuple[str, ...]]
    # the sources that are not taken, because they lead out of the cache's project, by file
    left_out: Mapping[Path, str]

    def origin(self, entry: Entry) -> Path:
        """The file from which a result comes."""
        return self.origins[entry_text(replace(entry, rivals=()))]


@dataclass(frozen=True)
class Merged:
    """The files that a merge has written, by path inside `into`: `nvidia-h200/reduce.json`."""

    into: Path
    records: dict[str, MergedRecord]
    journals: dict[str, int]  # number of rows
    ignored: tuple[Path, ...]  # neither results nor journals


def merge_folders(folders: Sequence[Path], into: Path) -> Merged:
    """Merge caches and journals, also in subfolders, into a folder, including what it already holds.

    Raises:
        InputError: A folder is missing or holds no results.
        CacheError: A cache file is damaged, two devices have the same folder name, or the target cannot be
            written.
        JournalError: A journal is damaged, or a search is writing it.
    """
    contents = _Found()
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder; merge takes folders of caches and journals")
        if folder.resolve() != into.resolve() and into.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"--into {into}: lies inside {folder}, which is read; choose another folder")
        _read_folder(folder, contents)
    if not (contents.records or contents.journals or contents.misses):
        raise InputError(f"{', '.join(map(str, folders))}: expected results or journals, found neither")
    if into.is_dir():
        _read_folder(into, contents)
    for place, devices in contents.devices.items():
        for device in devices:
            if not same_device(device, devices[0]):
                raise CacheError(f"{place}: two caches say {devices[0].name} and {device.name}; keep one")
    try:
        _check_writable(contents, into)
        return _write(contents, into)
    except OSError as error:
        raise CacheError(f"{into}: cannot be written: {error.strerror}") from None


def _read_folder(folder: Path, contents: _Found) -> None:
    for path in sorted(_files(folder)):
        place = path.relative_to(folder)
        if any(part.startswith(".") for part in place.parts):
            continue
        if path.name == DEVICE_FILE:
            contents.devices.setdefault(place.parent, []).append(read_device(str(path)))
        elif path.suffix == ".json" and is_name(path.stem) and (path.parent / DEVICE_FILE).exists():
            contents.records.setdefault(place, {})[path] = read_record(str(path))
        elif path.name == MISSES:
            contents.misses.setdefault(place, set()).update(miss.line for miss in read_misses(path.parent))
        elif path.suffix == ".jsonl" and (lines := _journal_lines(path)):
            header, *rows = lines
            plain = place.with_name(place.name.replace(f".{_mark(header)}.jsonl", ".jsonl"))
            contents.journals.setdefault(plain, {}).setdefault(header, []).extend(rows)
        else:
            contents.ignored.append(path)


def _files(folder: Path) -> Iterator[Path]:
    """Every file below a folder; raises InputError if a folder cannot be read."""

    def refuse(error: OSError) -> NoReturn:
        raise InputError(f"{error.filename}: cannot be read: {error.strerror}")

    try:
        for where, _, names in os.walk(folder, onerror=refuse):
            yield from (path for path in (Path(where, name) for name in names) if path.is_file())
    except OSError as error:
        refuse(error)


def _journal_lines(path: Path) -> list[str]:
    """The complete lines of a journal; empty for another file. Raises JournalError for a damaged one."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise JournalError(f"{path}: damaged: {error}") from None
    if not is_journal(text):
        return []
    parse_journal(text, path)
    lines = text.split("\n")
    return lines[:-1]  # the part after the last line break is empty or was cut off


def _check_writable(contents: _Found, into: Path) -> None:
    """Check before anything is written that no link leads elsewhere and that no search writes a journal.

    Raises:
        CacheError: A folder inside `into` is a link, or a journal is.
        JournalError: A search is writing a journal.
    """
    journals = [
        name for place, headers in contents.journals.items() for name, _ in _names(place, sorted(headers))
    ]
    folders = {
        parent for place in (*contents.devices, *contents.misses) for parent in (place, *place.parents)
    }
    folders |= {parent for place in journals for parent in place.parents}
    for place in sorted({*folders, *journals} - {Path(), *contents.misses}):
        if (into / place).is_symlink():
            raise CacheError(f"{into / place}: is a link, through which nothing is written; move it away")
    for path in (into / name for name in journals if (into / name).exists()):
        with locked_journal(path):
            pass


def _merged(read: Mapping[Path, KernelRecord], path: Path) -> MergedRecord:
    """Merge records into the file at a path, with what that holds now; the caller has locked its folder."""
    held = {path: read_record(str(path))} if path.exists() else {}
    records = {**read, **held}  # what the file held before may have changed
    root = path.parents[1]
    own = {record.source for record in held.values()}
    left_out = {
        file: record.source
        for file, record in records.items()
        if record.source and record.source not in own and not is_in_project(root, record.source)
    }
    by_time = not root.name.startswith(OBJECTIVE)
    merged = merge_records([*records.values()], by_time=by_time, left_out={*left_out.values()})
    newest = _newest_first(records.values())[0]
    origins = {
        entry_text(replace(result, rivals=())): file
        for file, record in records.items()  # the last one is the merged file itself
        for entry in record.entries
        for result in (entry, *entry.rivals)
    }
    return MergedRecord(
        merged,
        origins,
        next(file for file, record in records.items() if record == newest),
        {file: properties for file, record in records.items() if (properties := _differing(record, newest))},
        left_out,
    )


def _differing(record: KernelRecord, other: KernelRecord) -> tuple[str, ...]:
    """The properties of a kernel in which two records differ, in words."""
    names = (item.name for item in fields(KernelRecord) if item.name not in ("entries", "variants", "kernel"))
    return tuple(name.replace("_", " ") for name in names if getattr(record, name) != getattr(other, name))


def _write(contents: _Found, into: Path) -> Merged:
    records = {}
    for place, devices in contents.devices.items():
        folder = into / place
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            replace_file(folder / DEVICE_FILE, device_text(merge_devices(devices)))
            for file in (file for file in contents.records if file.parent == place):
                merged = _merged(contents.records[file], into / file)
                replace_file(into / file, record_text(merged.record))
                records[file.as_posix()] = merged
    for place, lines in contents.misses.items():
        (into / place).parent.mkdir(parents=True, exist_ok=True)
        with locked((into / place).parent):
            replace_file(into / place, "".join(sorted(lines)))
    journals = {}
    for place, by_header in contents.journals.items():
        for name, header in _names(place, sorted(by_header)):
            journals[name.as_posix()] = _write_journal(into / name, header, by_header[header])
    return Merged(into, records, journals, tuple(contents.ignored))


def _names(place: Path, headers: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """The names of journals with one name and several headers: the first header keeps the name."""
    for number, header in enumerate(headers):
        yield place.with_name(f"{place.stem}.{_mark(header)}.jsonl") if number else place, header


def _mark(header: str) -> str:
    return hashlib.sha256(header.encode()).hexdigest()[:8]


def _write_journal(path: Path, header: str, rows: Sequence[str]) -> int:
    """Write a journal and count its rows; raises JournalError while a search is writing the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked_journal(path):
        there = _journal_lines(path) if path.exists() else []  # may have grown since it was read
        united = merge_rows([*rows, *(there[1:] if there[:1] == [header] else ())])
        replace_file(path, "".join(f"{line}\n" for line in (header, *united)))
    return len(united)
