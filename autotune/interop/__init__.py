"""Other tools' formats: recorded results are read into a `Recording` and written from one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from autotune.core import json_values as values
from autotune.errors import InputError
from autotune.interop import journals, kernel_tuner_stored, t1, t4
from autotune.interop import kernel_tuner as kernel_tuner_cache
from autotune.interop.files import read_text
from autotune.interop.recording import Costs, RecordedResult, Recording
from autotune.space import SpaceSpec

__all__ = ["WRITERS", "Costs", "RecordedResult", "Recording", "read_recording", "read_recordings", "read_t1"]

WRITERS: Mapping[str, Callable[[Recording], str]] = {  # by the names of `autotune export --format`
    t4.NAME: t4.write,
    kernel_tuner_cache.NAME: kernel_tuner_cache.write,
    journals.NAME: journals.write,
}


def read_t1(path: Path) -> SpaceSpec | None:
    """Read the space of a T1 input; None for another file. Raises InputError for a bad one."""
    text = read_text(path)
    if not t1.might_be(text):
        return None
    with _errors_in(path):
        data = values.mapping(values.load(text), "")
        return t1.read(data, path) if t1.is_t1(data) else None


def read_recording(path: Path) -> Recording:
    """Read the results of a file with one device and problem; raises InputError for any other file."""
    recordings = read_recordings(path)
    if len(recordings) > 1:
        raise InputError(f"{path}: holds results of {len(recordings)} devices or sizes; use autotune import")
    return recordings[0]


def read_recordings(path: Path) -> tuple[Recording, ...]:
    """Read results of a journal, of T4 or of Kernel Tuner (cache or stored results), compressed or not.

    The content decides on the format. Raises InputError for a file of another format, or a damaged one.
    """
    text = read_text(path)
    with _errors_in(path):
        return _read(text, path)


def _read(text: str, path: Path) -> tuple[Recording, ...]:
    if journals.is_journal(text):
        return (journals.read(text, path),)
    if kernel_tuner_cache.is_kernel_tuner_cache(text):
        return (kernel_tuner_cache.read(kernel_tuner_cache.parse(text)),)
    data = values.mapping(values.load(text), "")
    if t4.is_t4(data):
        return (t4.read(data, path),)
    if kernel_tuner_stored.is_stored(data):
        return kernel_tuner_stored.read(data)
    raise InputError(
        f"{path}: not recorded results: expected a journal of autotune, T4 results or a Kernel Tuner cache"
    )


@contextmanager
def _errors_in(path: Path) -> Iterator[None]:
    """Turn errors in the content of a file into an InputError that names the file."""
    try:
        yield
    except values.Damaged as error:
        raise InputError(f"{path}: {error}") from None
    except values.NoJson as error:
        raise InputError(
            f"{path}: not JSON: {error}; expected recorded results, such as a journal in runs/"
        ) from None
