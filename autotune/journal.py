"""Append-only record of a search: one JSON line per trial, on disk before the next trial starts.

The first line says what the rows are true of: kernel, source, device, problem, arguments. A row is keyed
by everything that decides its outcome, so a row outlives changes of the space that leave its key alone.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from autotune.errors import InputError, JournalError
from autotune.model import Config
from autotune.trials import Measurement, Status, Trial

VERSION = 1


class Journal:
    """An open journal: `trials` by content key, `finals` by the keys of the finalists that took part."""

    def __init__(self, path: Path, header: Mapping[str, str], *, fresh: bool = False) -> None:
        """Open or create; raises JournalError when the file belongs to another search or is damaged."""
        self.path = path
        self.warning: str | None = None
        self.trials: dict[str, Trial] = {}
        self.finals: dict[tuple[str, ...], dict[str, Measurement]] = {}
        self._header = dict(header)
        self._file = _open_locked(path)
        try:
            if fresh:
                self._file.truncate(0)
            self._load()
        except JournalError:
            self._file.close()
            raise

    def append(self, trial: Trial) -> None:
        """Write one trial; it is on disk when this returns."""
        self.trials[trial.key] = trial
        self._write({"trial": encode_trial(trial)})

    def append_finals(self, measurements: Mapping[str, Measurement]) -> None:
        """Write what a final round measured, by content key."""
        self.finals[tuple(sorted(measurements))] = dict(measurements)
        self._write({"finals": {key: asdict(value) for key, value in measurements.items()}})

    def close(self) -> None:
        """Close the file and release its lock."""
        self._file.close()

    def _load(self) -> None:
        self._file.seek(0)
        lines = self._file.read().splitlines(keepends=True)
        if lines and not _is_whole(lines[-1]):
            self.warning = f"{self.path}: the last line was cut off and is dropped"
            torn = lines.pop()
            whole_bytes = os.fstat(self._file.fileno()).st_size - len(torn.encode(errors="surrogateescape"))
            self._file.truncate(whole_bytes)
        if not lines:
            self._write({"journal": VERSION, **self._header})
            return
        rows = [_decode(line, number, self.path) for number, line in enumerate(lines, 1)]
        for number, row in enumerate(rows[1:], 2):
            self._take(row, number)
        differences = self._differences(rows[0])
        if differences and any(trial.status is Status.OK for trial in self.trials.values()):
            raise JournalError(
                f"{self.path}: its trials are not true of this search: {differences}. "
                "Start over with --fresh, or keep both with --journal FILE"
            )
        if differences:
            self.warning = f"{self.path}: held failures of another search only and is started over"
            self.trials.clear()
            self._file.truncate(0)
            self._write({"journal": VERSION, **self._header})

    def _differences(self, found: Mapping[str, Any]) -> str:
        if found.get("journal") != VERSION:
            raise JournalError(
                f"{self.path}:1: not a journal of version {VERSION}; choose another with --journal"
            )
        changed = [name for name, value in self._header.items() if found.get(name) != value]
        return "; ".join(f"{name} was {found.get(name)!r}, is {self._header[name]!r}" for name in changed)

    def _take(self, row: Mapping[str, Any], number: int) -> None:
        try:
            if "trial" in row:
                trial = decode_trial(row["trial"])
                self.trials[trial.key] = trial
            elif "finals" in row:
                finals = {key: _decode_measurement(value) for key, value in row["finals"].items()}
                self.finals[tuple(sorted(finals))] = finals
            else:
                raise KeyError("trial")
        except (KeyError, TypeError, ValueError) as error:
            raise JournalError(f"{self.path}:{number}: not a row of a journal ({error})") from None

    def _write(self, row: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def read_trials(path: Path) -> tuple[dict[str, str], list[Trial]]:
    """Header and trials of a journal, without locking or changing it; raises InputError or JournalError."""
    try:
        lines = path.read_text(errors="surrogateescape").splitlines(keepends=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if lines and not _is_whole(lines[-1]):
        lines.pop()
    rows = [_decode(line, number, path) for number, line in enumerate(lines, 1)]
    if not rows or rows[0].get("journal") != VERSION:
        raise JournalError(f"{path}:1: not a journal of version {VERSION}")
    return rows[0], [decode_trial(row["trial"]) for row in rows[1:] if "trial" in row]


def encode_trial(trial: Trial) -> dict[str, Any]:
    """A trial as JSON values; fields at their defaults are left out."""
    row: dict[str, Any] = {"config": dict(trial.config), "key": trial.key, "status": trial.status.value}
    optional = ("detail", "compile_ms", "cost_s", "binary_sha256", "registers", "spill_bytes", "shared_bytes")
    row |= {name: getattr(trial, name) for name in optional if getattr(trial, name)}
    if trial.measurement is not None:
        row["measurement"] = asdict(trial.measurement)
    return row


def decode_trial(row: Mapping[str, Any]) -> Trial:
    """The inverse of `encode_trial`; raises KeyError, TypeError or ValueError for anything else."""
    fields = dict(row)
    measurement = fields.pop("measurement", None)
    return Trial(
        config=Config(fields.pop("config")),
        status=Status(fields.pop("status")),
        measurement=_decode_measurement(measurement) if measurement is not None else None,
        **fields,
    )


def _decode_measurement(row: Mapping[str, Any]) -> Measurement:
    fields = dict(row)
    samples: Sequence[float] = fields.pop("samples_ms")
    warmups: Sequence[float] = fields.pop("warmups_ms")
    return Measurement(samples_ms=tuple(samples), warmups_ms=tuple(warmups), **fields)


def _open_locked(path: Path) -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: the journal cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise JournalError(
            f"{path}: another search is writing it; wait for it or use --journal FILE"
        ) from None
    return file


def _is_whole(line: str) -> bool:
    if not line.endswith("\n"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _decode(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise JournalError(
            f"{path}:{number}: the line is damaged; rows after it cannot be trusted. Use --fresh"
        )
    return row
