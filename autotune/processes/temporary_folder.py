"""A temporary folder for a run and its children; one that a killed run left behind goes with the next run.

The folder itself is the lock: who holds it uses the folder, and the lock ends with the process, however
that ends.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autotune.processes.files import hold

_PREFIX = "autotune-scratch-"
_NAME = re.compile(f"{_PREFIX}[a-z0-9_]{{8}}")  # as mkdtemp makes it, so that nobody's own folder is meant


@contextmanager
def scratch_folder() -> Iterator[str]:
    """An empty folder, removed in the end with all that is in it."""
    _remove_abandoned()
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        lock = _locked(folder, wait=True)
        if Path(folder).exists():  # else another process took it for an abandoned one before it was locked
            break
        _release(lock)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _release(lock)


def _remove_abandoned() -> None:
    """Remove the folders of processes that are gone."""
    with os.scandir(tempfile.gettempdir()) as entries:
        found = [entry.path for entry in entries if _NAME.fullmatch(entry.name)]
    for folder in found:
        lock = _locked(folder, wait=False)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
        _release(lock)


def _locked(folder: str, *, wait: bool) -> int | None:
    """A descriptor that holds the lock of a folder; None where it cannot be had."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        if hold(descriptor, wait=wait):
            return descriptor
        os.close(descriptor)
    return None


def _release(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
