"""Foreign formats: results that others measured, read into one record and written from it."""

from __future__ import annotations

from pathlib import Path

from autotune.errors import InputError
from autotune.interop import journals, kernel_tuner_cache, kernel_tuner_stored, t1, t4
from autotune.interop.files import parse_json, read_text
from autotune.interop.recording import Costs, RecordedResult, Recording
from autotune.space import SpaceSpec

__all__ = ["Costs", "RecordedResult", "Recording", "read_recording", "read_recordings", "read_t1"]


def read_t1(path: Path) -> SpaceSpec | None:
    """The space of a T1 input; None when the file is something else. Raises InputError."""
    text = read_text(path)
    if not t1.might_be(text):
        return None
    data = parse_json(text, path)
    return t1.read(data, path) if t1.is_t1(data) else None


def read_recording(path: Path) -> Recording:
    """The results of a file of one device and problem; raises InputError as `read_recordings` does."""
    recordings = read_recordings(path)
    if len(recordings) > 1:
        raise InputError(f"{path}: holds results of {len(recordings)} devices or sizes; use autotune import")
    return recordings[0]


def read_recordings(path: Path) -> tuple[Recording, ...]:
    """The results of a journal, of T4 or of Kernel Tuner (cache or stored results), compressed or not.

    The content decides, not the name. Raises InputError when the file is none of them, or is damaged.
    """
    text = read_text(path)
    if journals.is_journal(text):
        return (journals.read(text, path),)
    if kernel_tuner_cache.is_kernel_tuner_cache(text):
        return (kernel_tuner_cache.read(kernel_tuner_cache.parse(text, path), path),)
    data = parse_json(text, path)
    if t4.is_t4(data):
        return (t4.read(data, path),)
    if kernel_tuner_stored.is_stored(data):
        return kernel_tuner_stored.read(data, path)
    raise InputError(
        f"{path}: not recorded results: expected a journal of autotune, T4 results or a Kernel Tuner cache"
    )
