"""A temporary folder for a run and its children; the next run removes those that killed runs left.

A run locks its folder. The lock ends with the process, however that ends.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from autotune.processes.files import lock

_PREFIX = "autotune-scratch-"
_NAME = re.compile(f"{_PREFIX}[a-z0-9_]{{8}}")  # as mkdtemp makes it: no user's folder matches


@contextmanager
def scratch_folder() -> Iterator[str]:
    """Make an empty folder; remove it with its contents at the end."""
    with os.scandir(tempfile.gettempdir()) as entries:
        abandoned = [entry.path for entry in entries if _NAME.fullmatch(entry.name)]
    for folder in abandoned:
        with _locked(folder, wait=False) as is_locked:
            if is_locked:
                shutil.rmtree(folder, ignore_errors=True)
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        with _locked(folder, wait=True):
            if not Path(folder).exists():  # another process removed it before it was locked
                continue
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return


@contextmanager
def _locked(folder: str, *, wait: bool) -> Iterator[bool]:
    """Lock a folder in a block; False if that is not possible."""
    with ExitStack() as opened:
        is_locked = False
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            opened.callback(os.close, descriptor)
            is_locked = lock(descriptor, wait=wait)
        yield is_locked
