"""Results of other tools as those of devices: to compare with, never to serve.

They are not stored. The device's name and the provenance say that they are imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from autotune.analysis.compare import DeviceResult
from autotune.core.records import DeviceInfo, Entry, ProblemKey, Provenance, Sizes
from autotune.core.text import problem_text
from autotune.errors import InputError
from autotune.hardware.names import is_same, slug, traits_of_name
from autotune.interop import Recording, read_recording

_UNKNOWN_TIME = "1970-01-01T00:00:00+00:00"  # older than any: the files state none
_ORIGIN = "imported, not verified"
UNKNOWN_DTYPE = "unknown element type"
UNKNOWN_KIND = "unknown"


class External(NamedTuple):
    """Results of one problem on one device, and the file that has them."""

    path: Path
    recording: Recording


def read_external(kernel: str, paths: Iterable[Path]) -> list[External]:
    """The results of a kernel in recorded files.

    Raises:
        InputError: A file cannot be read, or holds another kernel or no time.
    """
    externals = [External(path, read_recording(path)) for path in paths]
    for path, recording in externals:
        if recording.kernel != kernel:
            raise InputError(
                f"{path}: expected results of {kernel!r}, found those of {recording.kernel!r}; if it is the "
                f"same kernel, import the file first: autotune import {path} --kernel {kernel}"
            )
        if recording.best is None:
            raise InputError(f"{path}: no configuration has a time: there is nothing to compare")
    return externals


def of_same_kernel(
    results: Iterable[DeviceResult], external: Sequence[External]
) -> tuple[list[DeviceResult], list[str]]:
    """The results whose parameters some of the recorded ones have, and the devices of the others.

    Without recorded results, all count.
    """
    theirs = {parameter.name for recorded in external for parameter in recorded.recording.parameters}
    same, others = [], dict[str, None]()
    for result in results:
        if external and theirs.isdisjoint(result.entry.config):
            others[result.folder] = None
        else:
            same.append(result)
    return same, list(others)


def as_results(
    external: Iterable[External], own: Sequence[DeviceResult], sizes: Sizes, dtype: str | None
) -> list[DeviceResult]:
    """The best of recorded results; sizes and element type are the given ones where a file says none.

    A device is that of an `own` result of the same name. Sizes with other names than all own ones get the
    names of the only own problem with the same numbers. Raises InputError if two results have the same device
    and problem.
    """
    seen: dict[tuple[str, ProblemKey], Path] = {}
    results = []
    for path, recording in external:
        theirs = sizes if recording.sizes is None else _named_as_own(recording.sizes, own)
        entry = _entry(recording, theirs, recording.dtype or dtype or UNKNOWN_DTYPE)
        name = slug(recording.device)
        known = (result.device for result in own if is_same(result.device.name, recording.device))
        device = next(known, None) or unknown_device(recording.device, name)
        if (name, entry.problem) in seen:
            problem = problem_text(entry.sizes, entry.dtype, entry.data)
            subject = f"{recording.device}, {problem}, and so has {seen[name, entry.problem]}"
            raise InputError(f"{path}: has results of {subject}; give only one")
        seen[name, entry.problem] = path
        results.append(DeviceResult(f"{name} (imported)", device, entry))
    return results


def _named_as_own(sizes: Sizes, own: Iterable[DeviceResult]) -> Sizes:
    """Sizes by the names of the only own problem with these numbers, if no own one has their names."""
    problems = [result.entry.sizes for result in own]
    if any(known.keys() == sizes.keys() for known in problems):
        return sizes
    numbers = sorted(sizes.values())
    alike = [known for known in problems if sorted(known.values()) == numbers]
    return alike[0] if alike and all(known == alike[0] for known in alike) else sizes


def unknown_device(name: str, slug: str) -> DeviceInfo:
    """A device of which only the name is known; its limits exclude no configuration.

    It is a GPU if its name implies an architecture of one; else its kind is unknown.
    """
    traits = traits_of_name(name)
    return DeviceInfo(
        backend="recorded",
        name=name,
        slug=slug,
        kind="gpu" if traits.architecture else UNKNOWN_KIND,
        vendor=traits.vendor or "",
        architecture=traits.architecture or "",
        compute_units=1,
        warp_size=32,
        max_threads_per_block=1024,
        shared_bytes_per_block=2**31,
        registers_per_block=None,
        memory_bytes=2**40,
        memory_bandwidth_bytes_per_s=None,
        cache_bytes=0,
        has_shuffle=True,
        driver="",
        runtime="",
    )


def _entry(recording: Recording, sizes: Sizes, dtype: str) -> Entry:
    best = recording.best
    assert best is not None and best.time_ms is not None
    times = ((trial.config, trial.time_ms) for trial in recording.trials)
    return Entry(
        sizes=dict(sizes),
        dtype=dtype,
        data=recording.data or "",
        config=best.config,
        time_ms=best.time_ms,
        interval_ms=(best.time_ms, best.time_ms),
        default_time_ms=None,
        ties=(),
        provenance=_provenance(recording),
        measured=tuple((config, time_ms) for config, time_ms in times if time_ms is not None),
    )


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
