"""A temporary folder for a run and its children; the next run removes those that killed runs left.

A run locks its folder. The lock ends with the process, however that ends.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autotune.processes.files import lock

_PREFIX = "autotune-scratch-"
_NAME = re.compile(f"{_PREFIX}[a-z0-9_]{{8}}")  # as mkdtemp makes it: no user's folder matches


@contextmanager
def scratch_folder() -> Iterator[str]:
    """Make an empty folder; remove it with its contents at the end."""
    _remove_abandoned()
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        lock = _locked(folder, wait=True)
        if Path(folder).exists():  # else another process removed it before it was locked
            break
        _release(lock)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _release(lock)


def _remove_abandoned() -> None:
    with os.scandir(tempfile.gettempdir()) as entries:
        folders = [entry.path for entry in entries if _NAME.fullmatch(entry.name)]
    for folder in folders:
        lock = _locked(folder, wait=False)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
        _release(lock)


def _locked(folder: str, *, wait: bool) -> int | None:
    """Lock a folder and return the descriptor that holds the lock; None if that is not possible."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        if lock(descriptor, wait=wait):
            return descriptor
        os.close(descriptor)
    return None


def _release(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
