"""Results of other tools as device records: to compare with, never to serve.

They are not stored. The device's name and the provenance say that they are imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from autotune.core.records import Entry, KernelRecord, ProblemKey, Provenance, Sizes
from autotune.core.text import problem_text
from autotune.errors import InputError
from autotune.hardware.names import slug
from autotune.interop import Recording, read_recording
from autotune.serving.device_records import DeviceRecord
from autotune.space.recorded import unknown_device

_UNKNOWN_TIME = "1970-01-01T00:00:00+00:00"  # older than any: the files state none
_ORIGIN = "imported, not verified"
UNKNOWN_DTYPE = "unknown element type"


class External(NamedTuple):
    """Results of one problem on one device, and the file that has them."""

    path: Path
    recording: Recording


def read_external(kernel: str, paths: Iterable[Path]) -> list[External]:
    """The results of a kernel in recorded files.

    Raises:
        InputError: A file cannot be read, or holds another kernel or no time.
    """
    found = [External(path, read_recording(path)) for path in paths]
    for path, recording in found:
        if recording.kernel != kernel:
            advice = (
                f"expected those of {kernel!r}; autotune import --kernel {kernel} makes a journal of them"
            )
            raise InputError(f"{path}: holds results of {recording.kernel!r}, {advice}")
        if recording.best is None:
            raise InputError(f"{path}: no configuration has a time: there is nothing to compare")
    return found


def of_same_kernel(
    device_records: Iterable[DeviceRecord], external: Sequence[External]
) -> tuple[list[DeviceRecord], list[str]]:
    """The records whose parameters some of the recorded results have, and the devices of the others.

    Without recorded results, all records count.
    """
    theirs = {parameter.name for one in external for parameter in one.recording.parameters}
    same, others = [], []
    for known in device_records:
        if external and theirs.isdisjoint(known.record.parameter_names):
            others.append(known.folder)
        else:
            same.append(known)
    return same, others


def as_records(external: Iterable[External], sizes: Sizes, dtype: str | None) -> list[DeviceRecord]:
    """Recorded results as records.

    Args:
        external: As `read_external` gives them.
        sizes: Of the problem, where a file does not say.
        dtype: The element type, where a file does not say; None if unknown.

    Raises:
        InputError: Two have the same device and problem.
    """
    seen: dict[tuple[str, ProblemKey], Path] = {}
    records = []
    for path, recording in external:
        found = _device_record(recording, sizes, recording.dtype or dtype or UNKNOWN_DTYPE)
        (entry,) = found.record.entries
        if (found.folder, entry.problem) in seen:
            problem = problem_text(entry.sizes, entry.dtype, entry.data)
            other = f"{recording.device}, {problem}, as {seen[found.folder, entry.problem]} does"
            raise InputError(f"{path}: holds results of {other}; give one of them")
        seen[found.folder, entry.problem] = path
        records.append(found)
    return records


def _device_record(recording: Recording, sizes: Sizes, dtype: str) -> DeviceRecord:
    best = recording.best
    assert best is not None and best.time_ms is not None
    times = tuple((trial.config, trial.time_ms) for trial in recording.trials if trial.time_ms is not None)
    entry = Entry(
        sizes=dict(sizes if recording.sizes is None else recording.sizes),
        dtype=dtype,
        data=recording.data or "",
        config=best.config,
        time_ms=best.time_ms,
        interval_ms=(best.time_ms, best.time_ms),
        default_time_ms=None,
        ties=(),
        provenance=_provenance(recording),
        measured=times,
    )
    record = KernelRecord(
        kernel=recording.kernel,
        dtypes=(dtype,),
        parameters=recording.parameters,
        constraints=(),
        derived={},
        arguments=(),
        launch=(),
        compiler_options={},
        default=best.config,
        entries=(entry,),
    )
    name = slug(recording.device)
    return DeviceRecord(f"{name} (imported)", unknown_device(recording.device, name), record)


def _provenance(recording: Recording) -> Provenance:
    return Provenance(
        tuned_at=_UNKNOWN_TIME,
        autotune="",
        host="",
        driver="",
        runtime="",
        source_sha256="",
        space_sha256="",
        engine=_ORIGIN,
        seed=0,
        trials=len(recording.trials),
        valid_configurations=len(recording.trials),
        protocol="",
    )
