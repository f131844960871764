"""Other tools' formats: recorded results are read into a `Recording` and written from one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from autotune.core import json_values as values
from autotune.errors import InputError
from autotune.interop import journals, t4
from autotune.interop import kernel_tuner as kernel_tuner_cache
from autotune.interop.files import read_text
from autotune.interop.recording import Recording, imported_trial

__all__ = ["WRITERS", "Recording", "imported_trial", "read_recording"]

WRITERS: Mapping[str, Callable[[Recording], str]] = {  # by the names of `autotune export --format`
    "t4": t4.write,
    "kernel-tuner": kernel_tuner_cache.write,
    "journal": journals.write,
}


def read_recording(path: Path) -> Recording:
    """Read the results of a journal, of T4 or of a cache of Kernel Tuner, compressed or not.

    The content decides on the format. Raises InputError for a file of another format, or a damaged one.
    """
    text = read_text(path)
    try:
        if journals.is_journal(text):
            return journals.read(text, path)
        if kernel_tuner_cache.is_kernel_tuner_cache(text):
            return kernel_tuner_cache.read(kernel_tuner_cache.parse(text))
        data = values.load_object(text)
        if t4.is_t4(data):
            return t4.read(data, path)
    except values.Damaged as error:
        raise InputError(f"{path}: {error}") from None
    except values.NoJson as error:
        raise InputError(
            f"{path}: not recorded results, such as a journal of a search in runs/; not JSON: {error}"
        ) from None
    raise InputError(
        f"{path}: not recorded results: expected a journal of autotune, T4 results or a Kernel Tuner cache"
    )
