"""Results of other tools as device records: to compare with, never to serve.

They are not stored. The device's name and the provenance say that they are imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from autotune.core.records import Entry, KernelRecord, Provenance, Sizes
from autotune.errors import InputError
from autotune.hardware.names import slug
from autotune.interop import Recording, read_recordings
from autotune.serving.device_records import DeviceRecord
from autotune.space.recorded import unknown_device

_ORIGIN = "imported, not verified"
UNKNOWN_DTYPE = "unknown element type"


def imported(kernel: str, paths: Iterable[Path], sizes: Sizes, dtype: str | None) -> Iterator[DeviceRecord]:
    """The results of a kernel in recorded files.

    Args:
        kernel: The kernel's name.
        paths: Files of recorded results.
        sizes: Of the problem, where a file does not say.
        dtype: The element type, where a file does not say; None if unknown.

    Raises:
        InputError: A file cannot be read, holds another kernel or no time, or a device appears twice.
    """
    seen: dict[str, Path] = {}
    for path in paths:
        for recording in read_recordings(path):
            if recording.kernel != kernel:
                advice = (
                    f"expected those of {kernel!r}; autotune import --kernel {kernel} makes a journal of them"
                )
                raise InputError(f"{path}: holds results of {recording.kernel!r}, {advice}")
            found = _device_record(recording, path, sizes, recording.dtype or dtype or UNKNOWN_DTYPE)
            if found.folder in seen:
                other = f"{recording.device}, as {seen[found.folder]} does"
                raise InputError(f"{path}: holds results of {other}; give one of them")
            seen[found.folder] = path
            yield found


def _device_record(recording: Recording, path: Path, sizes: Sizes, dtype: str) -> DeviceRecord:
    best = recording.best
    if best is None or best.time_ms is None:
        raise InputError(f"{path}: no configuration has a time: there is nothing to compare")
    times = tuple(
        (result.config, result.time_ms) for result in recording.results if result.time_ms is not None
    )
    entry = Entry(
        sizes=dict(sizes if recording.sizes is None else recording.sizes),
        dtype=dtype,
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
        tuned_at="",
        autotune="",
        host="",
        driver="",
        runtime="",
        source_sha256="",
        space_sha256="",
        engine=_ORIGIN,
        seed=0,
        trials=len(recording.results),
        valid_configurations=len(recording.results),
        protocol=recording.format,
    )
