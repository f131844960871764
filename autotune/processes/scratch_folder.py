"""Temporary folders of runs and of their processes; the next run removes those that killed runs left.

A folder is locked. The lock ends with the processes that hold it, however these end.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autotune.processes.files import lock

_PREFIX = "autotune-scratch-"
_NAME = re.compile(f"{_PREFIX}[a-z0-9_]{{8}}")  # as mkdtemp makes it: no user's folder matches
_OPENED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_ATTEMPTS, _PAUSE_S = 20, 0.05  # to remove a folder


@contextmanager
def scratch_folder() -> Iterator[str]:
    """Make an empty folder; remove it with its contents at the end."""
    folder, locked = locked_folder()
    try:
        yield folder
    finally:
        remove(folder)
        os.close(locked)


def locked_folder() -> tuple[str, int]:
    """Make an empty folder; it is locked until its descriptor, and each copy of that, is closed."""
    with os.scandir(tempfile.gettempdir()) as entries:
        abandoned = [entry.path for entry in entries if _NAME.fullmatch(entry.name)]
    for folder in abandoned:
        with suppress(OSError):
            descriptor = os.open(folder, _OPENED)
            try:
                if lock(descriptor, wait=False):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        with suppress(FileNotFoundError):  # another process removed it before it was locked
            descriptor = os.open(folder, _OPENED)
            with suppress(OSError):  # without locks, no process removes it
                lock(descriptor)
            if Path(folder).exists():
                return folder, descriptor
            os.close(descriptor)


def remove(folder: str) -> None:
    """Remove a folder with its contents; processes that are being killed may write to it a moment longer."""
    for _ in range(_ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not Path(folder).exists():
            return
        time.sleep(_PAUSE_S)
