"""The journal of a search: a file with one JSON line per trial, appended before the next trial starts.

Once the operating system has a line, it outlives this process; `close` syncs all to the disk.

The first line describes what all rows share: kernel, source, device, problem and arguments. A row's key
covers all that its outcome depends on, so the row is valid as long as its key is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from io import FileIO
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from autotune.core import json_values as values
from autotune.core.outcomes import FRESH_INPUTS, Outcomes, worst
from autotune.core.text import count_text, shortened
from autotune.core.trials import DeviceScale, Measurement, Status, Trial
from autotune.errors import AutotuneError, InputError, JournalError, WriteError
from autotune.evaluation.journal_edits import JournalChanges, KeyOf, edit_of
from autotune.evaluation.journal_rows import (
    decode_trial,
    encode_checks,
    encode_measurement,
    encode_trial,
    read_checks,
    read_measurements,
)
from autotune.processes.files import locked, open_locked, replacement, require_unlinked, why_unwritable

VERSION = 1
_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_FOR_PEOPLE = {"devices", "lost"}  # rows that no search reads: scales of devices, and which device failed
_MOMENT_S = 0.5  # a page holds the lock for less
# the row that ends a search: seconds of its stages, doubts about its times, the tried share of the space
_STAGES, _DOUBTS, _EXPLORED = "stages", "doubts", "explored"


class LastRound(NamedTuple):
    """The measurements of a last round, and the outcomes of each configuration's checks, by key.

    `sanitizers` names the tools that are among the checks, with their versions; None if they were left out.
    """

    measurements: Mapping[str, Measurement] = {}
    outcomes: Mapping[str, Outcomes] = {}
    sanitizers: str | None = None

    @property
    def on_fresh_inputs(self) -> Outcomes:
        """The outcome on fresh inputs, the same for all configurations; empty if there were none to draw."""
        fresh = [outcomes[FRESH_INPUTS] for outcomes in self.outcomes.values() if FRESH_INPUTS in outcomes]
        return {FRESH_INPUTS: worst(fresh)} if fresh else {}


_LastRounds = dict[tuple[str, ...], LastRound]


class Journal:
    """An open journal: `trials` by key, and `last_rounds` by the keys of their finalists.

    `is_concluded` is True if the latest last round came after all trials.
    """

    def __init__(
        self,
        path: Path,
        header: Mapping[str, str],
        *,
        notes: Mapping[str, str] | None = None,
        fresh: bool = False,
        keep: bool = False,
        key_of: KeyOf = lambda _: None,
    ) -> None:
        """Open or create the file.

        All trials in it depend on `header`; `notes` say in words what a hash in it covers. `fresh` starts
        over. `keep` keeps the trials that still hold of a journal with another header; `key_of` is as in
        `edit_of`.

        Raises JournalError when it belongs to another search or is damaged, and WriteError when it cannot be
        written.
        """
        self.path = path
        self.warning: str | None = None
        self.trials: dict[str, Trial] = {}
        self.last_rounds: _LastRounds = {}
        self.is_concluded = False
        self._header, self._notes = dict(header), dict(notes or {})
        self._file = _open(path)
        try:
            self._load(fresh, keep, key_of)
        except OSError as error:
            self._file.close()
            raise _unwritable(path, error) from None
        except AutotuneError:
            self._file.close()
            raise

    @property
    def has_success(self) -> bool:
        """True if a configuration was right; nothing is lost with a journal that has none."""
        return any(trial.status is Status.OK for trial in self.trials.values())

    @property
    def batch(self) -> int | None:
        """Runs per sample in this journal: the largest of its trials; None before one was timed."""
        timed = (trial.measurement.batch for trial in self.trials.values() if trial.measurement)
        return max(timed, default=None)

    def append(self, *trials: Trial) -> None:
        """Write trials.

        Raises WriteError when that fails; earlier rows stay whole.
        """
        self.trials.update((trial.key, trial) for trial in trials)
        self.is_concluded = False
        self._write(*map(_trial_row, trials))

    def append_last_round(self, last_round: LastRound) -> None:
        """Write a last round; raises WriteError when that fails."""
        _put_last(self.last_rounds, last_round)
        self.is_concluded = True
        self._write(_last_round_row(last_round))

    def append_devices(self, scales: Mapping[str, DeviceScale]) -> None:
        """Write the scales of the devices of a search; raises WriteError when that fails."""
        self._write({"devices": {name: asdict(scale) for name, scale in scales.items()}})

    def append_lost(self, device: str, reason: str) -> None:
        """Write that a device has failed and is left out; raises WriteError when that fails."""
        self._write({"lost": {device: shortened(reason)}})

    def append_stages(self, seconds: Mapping[str, float], doubts: Sequence[str], explored: str) -> None:
        """Write each stage's seconds, and in words doubts about the times and what was explored.

        Raises WriteError when that fails.
        """
        stages = {name: round(time_s, 3) for name, time_s in seconds.items()}
        self._write({_STAGES: stages, _DOUBTS: [*doubts], _EXPLORED: explored})

    def close(self) -> None:
        """Sync and close the file, and release its lock; raises WriteError when the sync fails."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(self.path, error) from None
        finally:
            self._file.close()

    def _load(self, fresh: bool, keep: bool, key_of: KeyOf) -> None:
        self._file.seek(0)
        text = self._file.read().decode(errors="surrogateescape")
        lines = text.splitlines(keepends=True)
        _require_journal(lines, self.path)
        if fresh:
            lines.clear()
        if lines and not _is_whole(lines[-1]):
            self.warning = f"{self.path}: the last line was cut off, and is dropped"
            torn = lines.pop()
            whole_bytes = os.fstat(self._file.fileno()).st_size - len(torn.encode(errors="surrogateescape"))
            self._file.truncate(whole_bytes)
        if not lines:
            self.start_over()
            return
        rows = _Rows(self.path)
        rows.add(lines)
        self.trials, self.last_rounds, self.is_concluded = rows.trials, rows.last_rounds, rows.is_concluded
        if not self.has_success:
            # the default runs first, and it failed: nothing is lost, and the cause may be fixed by now
            if self.trials:
                self.warning = f"{self.path}: no trial in it succeeded, so the search starts over"
            self.start_over()
        elif edit := edit_of(rows.header, self._header, self._notes, self.trials.values(), key_of):
            self._continue_after(edit, keep)

    def start_over(self) -> None:
        """Forget all trials; raises WriteError when the file cannot be replaced: then it keeps them."""
        self._replace((), {})

    def _replace(self, trials: Iterable[Trial], last_rounds: _LastRounds) -> None:
        """Replace the file, atomically, by one with these trials and last rounds."""
        self.trials, self.last_rounds = {trial.key: trial for trial in trials}, last_rounds
        self.is_concluded = bool(last_rounds)  # only a harmless edit keeps them
        rows = [{"journal": VERSION, **self._header, **self._notes}, *map(_trial_row, self.trials.values())]
        rows += map(_last_round_row, last_rounds.values())
        if not os.fstat(self._file.fileno()).st_size:  # there is nothing to lose
            self._write(*rows)
            return
        try:
            with locked(self.path.parent):
                file = replacement(self.path, _lines(rows))
        except OSError as error:
            raise _unwritable(self.path, error) from None
        self._file.close()
        self._file = file

    def _continue_after(self, edit: JournalChanges, keep: bool) -> None:
        """Keep the trials that hold, or raise JournalError: the changes, and what to do."""
        kept, every = len(edit.kept), count_text(len(self.trials), "trial")
        changes = f"{self.path}: since its trials were run, something has changed: {'; '.join(edit.changes)}."
        if not (edit.is_harmless or (keep and kept)):
            left = (
                f"The times of {kept} of {every} still hold: to go on with them, add --keep; the last round "
                "verifies the fastest again"
                if kept
                else "No trial still holds"
            )
            in_python = f"{'keep=True, ' if kept else ''}fresh=True, journal=FILE"
            raise JournalError(
                f"{changes} {left}. Start over with --fresh, or keep both with --journal FILE "
                f"(in Python: {in_python})"
            )
        if not edit.is_harmless:
            self.warning = f"{changes} {kept} of {every} are kept"
        self._replace(edit.kept, self.last_rounds if edit.is_harmless else {})

    def _write(self, *rows: Mapping[str, Any]) -> None:
        """Write whole rows at once; if the disk is full, remove a partial one."""
        data = _lines(rows)
        whole_bytes = os.fstat(self._file.fileno()).st_size
        try:
            written = self._file.write(data)
            if written < len(data):  # writing the rest raises the reason
                self._file.write(data[written:])
        except OSError as error:
            with suppress(OSError):  # a reader drops a partial last row
                self._file.truncate(whole_bytes)
            raise _unwritable(self.path, error) from None


def _trial_row(trial: Trial) -> dict[str, Any]:
    return {"trial": encode_trial(trial)}


def _last_round_row(last_round: LastRound) -> dict[str, Any]:
    rows = {key: encode_measurement(value) for key, value in last_round.measurements.items()}
    checks = {key: encode_checks(outcomes) for key, outcomes in last_round.outcomes.items()}
    return {"finals": rows, "checks": checks, "sanitizers": last_round.sanitizers}


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(f"{_json(row)}\n" for row in rows).encode()


class Ending(NamedTuple):
    """What a search says at its end: seconds of its stages, doubts about its times, what was explored."""

    stages: Mapping[str, float] = {}
    doubts: tuple[str, ...] = ()
    explored: str = ""


class JournalContent(NamedTuple):
    """A journal: its first line, trials, the latest last round, and the end of its latest search.

    `is_concluded` is as a `Journal` has it.
    """

    header: dict[str, Any]
    trials: list[Trial]
    last_round: LastRound
    ending: Ending
    is_concluded: bool


def read_trials(path: Path) -> list[Trial]:
    """Read the trials of a journal; raises InputError, or JournalError for another file."""
    return read_journal(path).trials


def read_journal(path: Path) -> JournalContent:
    """Read a journal without locking or changing the file.

    Raises InputError when the file cannot be read and JournalError when it is not a journal.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    return parse_journal(text, path)


def parse_journal(text: str, path: Path) -> JournalContent:
    """Parse a journal's text, whose last line may be incomplete; errors name `path`."""
    rows = _Rows(path)
    rows.add_whole(text)
    return rows.content()


class FollowedJournal:
    """A journal that threads read again and again; each time, only the new rows are read."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._begin_again()

    def _begin_again(self) -> None:
        self._rows = _Rows(self._path)
        self._end = 0  # of what was read, in bytes
        self._last = b""  # the line before it
        self._inode = -1

    def read(self) -> JournalContent:
        """Read what is new; raises InputError, or JournalError for another file."""
        with self._lock:
            try:
                self._read()
            except OSError as error:
                raise InputError(f"{self._path}: cannot be read: {error.strerror}") from None
            except AutotuneError:
                self._begin_again()
                raise
            return self._rows.content()

    def _read(self) -> None:
        with self._path.open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            file.seek(self._end - len(self._last))
            if inode != self._inode or file.read(len(self._last)) != self._last:  # another file by now
                self._begin_again()
                file.seek(0)
            data = file.read()
        lines = self._rows.add_whole(data.decode(errors="surrogateescape"))
        self._inode = inode
        if lines:
            self._end += sum(len(line.encode(errors="surrogateescape")) for line in lines)
            self._last = lines[-1].encode(errors="surrogateescape")


def _require_journal(lines: Sequence[str], path: Path) -> None:
    """Raise JournalError for a file that is not a journal; an empty file may become one."""
    if lines and not lines[0].startswith('{"journal":'):
        raise JournalError(f"{path}:1: not a journal; name one that a search wrote, such as a file in runs/")


class _Rows:
    """The content of a journal's rows; a later row replaces an earlier one of the same trial."""

    def __init__(self, path: Path) -> None:
        self._path, self._count = path, 0
        self.header: dict[str, Any] = {}
        self.trials: dict[str, Trial] = {}
        self.last_rounds: _LastRounds = {}
        self.is_concluded = False
        self.ending = Ending()  # of the latest search

    def add(self, lines: Sequence[str]) -> None:
        """Read further lines; raises JournalError for one that is damaged."""
        for line in lines:
            self._count += 1
            place, row = f"{self._path}:{self._count}", _object(line)
            if row is None:
                raise JournalError(f"{place}: damaged; delete this line and the rest, or search with --fresh")
            if self._count == 1:
                self.header = _header(row, self._path)
                continue
            try:
                self._add(row)
            except ValueError as error:
                raise JournalError(f"{place}: not a row of a journal ({error})") from None

    def add_whole(self, text: str) -> list[str]:
        """Read the next text except an incomplete last line; return the lines that were read."""
        lines = text.splitlines(keepends=True)
        if not self._count:
            _require_journal(lines or [""], self._path)
        if lines and not _is_whole(lines[-1]):
            lines.pop()
        self.add(lines)
        return lines

    def content(self) -> JournalContent:
        """Everything that was read."""
        last_round = next(reversed(self.last_rounds.values()), LastRound())
        return JournalContent(
            self.header, [*self.trials.values()], last_round, self.ending, self.is_concluded
        )

    def _add(self, row: Mapping[str, Any]) -> None:
        if "trial" in row:
            trial = decode_trial(row["trial"])
            self.trials[trial.key] = trial
            self.is_concluded = False
        elif _STAGES in row:
            self.ending = Ending(
                values.mapping_of(values.amount, values.plain)(row[_STAGES], _STAGES),
                tuple(values.list_of(values.text)(row.get(_DOUBTS, []), _DOUBTS)),
                values.text(row.get(_EXPLORED, ""), _EXPLORED),
            )
        elif not row.keys() & _FOR_PEOPLE:
            self._add_last_round(row)

    def _add_last_round(self, row: Mapping[str, Any]) -> None:
        measurements = read_measurements(row.get("finals"), "finals")
        checks = read_checks(row.get("checks", {}), "checks")
        sanitizers = values.nullable(values.text)(row.get("sanitizers"), "sanitizers")
        _put_last(self.last_rounds, LastRound(measurements, checks, sanitizers))
        self.is_concluded = True


def _put_last(last_rounds: _LastRounds, last_round: LastRound) -> None:
    """Add a last round, which replaces an earlier one of the same configurations; the latest is last."""
    key = tuple(sorted(last_round.measurements))
    last_rounds.pop(key, None)
    last_rounds[key] = last_round


def _header(row: dict[str, Any], path: Path) -> dict[str, Any]:
    if row.get("journal") != VERSION:
        raise JournalError(f"{path}:1: expected a journal of version {VERSION}; choose another file")
    try:
        values.mapping_of(values.plain, values.text)(row, "header")
    except values.Damaged as error:
        raise JournalError(f"{path}:1: {error}") from None
    return row


def _unwritable(path: Path, error: OSError) -> WriteError:
    return WriteError(
        f"{path}: cannot be written: {error.strerror}; once it can be, the same command resumes"
    )


@contextmanager
def locked_journal(path: Path) -> Iterator[None]:
    """Hold a journal and its folder, to replace it; raises JournalError while a search writes it."""
    is_there = path.exists() and not path.is_symlink()  # no search writes through a link
    with locked(path.parent), ExitStack() as opened:
        if is_there:
            file = open_locked(path, _MOMENT_S)
            if file is None:
                raise JournalError(f"{path}: a search is writing this file; try again after it has ended")
            opened.enter_context(file)
        yield


def _open(path: Path) -> FileIO:
    try:
        require_unlinked(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: expected a file; choose one with --journal")
        file = open_locked(path, _MOMENT_S)
    except OSError as error:
        why = why_unwritable(path.parent, error)
        raise WriteError(
            f"{path}: the journal cannot be written: {why}, or choose a file with --journal"
        ) from None
    if file is None:
        raise JournalError(f"{path}: another search is writing this file; wait or give --journal FILE")
    return file


def _is_whole(line: str) -> bool:
    return line.endswith("\n") and _object(line) is not None


def _object(line: str) -> dict[str, Any] | None:
    """The JSON object of a line; None if it is damaged."""
    try:
        row = values.load(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
