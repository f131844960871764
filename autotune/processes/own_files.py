"""Files of this user alone, in the user's cache folder: what is kept there is executed, or believed.

One that another user owns or may write to, or that a link leads to, is not read; nothing is written to such a
folder.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from errno import EPERM
from pathlib import Path
from typing import IO


def open_own(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a file that only this user could have written; raises OSError for any other.

    With O_CREAT, its folder is made, too.
    """
    if flags & os.O_CREAT:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_own(path.parent.stat(), path.parent)
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        status = os.fstat(descriptor)
        _require_own(status, path)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(EPERM, "not a file", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_own(path: Path) -> bytes:
    """The content of a file that only this user could have written; raises OSError for any other."""
    with os.fdopen(open_own(path), "rb") as file:
        return file.read()


def write_own(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a whole file or none, in a folder that is made if it is not there; raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_own(path.parent.stat(), path.parent)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix="new-", delete=False) as file:
        try:
            write(file)
            file.flush()
            Path(file.name).replace(path)
        except OSError:
            Path(file.name).unlink()
            raise


def _require_own(status: os.stat_result, path: Path) -> None:
    """Raise PermissionError for a file or folder that another user owns or may write to."""
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(EPERM, "belongs to another user, or others may write to it", str(path))
