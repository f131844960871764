"""Files that several processes share: they are locked, and replaced as a whole.

Writing never follows a symbolic link.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OPENED = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")


def replace_file(path: Path, content: str | bytes) -> None:
    """Replace a file atomically and sync it; lock a folder with `locked` if others write to it."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    descriptor = os.open(temporary, _OPENED | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock file, and remove temporary files that a killed process left there.

    The lock file is removed at the end, so a process that waited for it checks that it is still in place.
    """
    path = folder / ".lock"
    while True:
        descriptor = os.open(path, _OPENED | os.O_RDWR, 0o666)
        try:
            hold(descriptor)
            if not _is_at(path, descriptor):
                continue
            try:
                for left in folder.iterdir():
                    if _TEMPORARY.fullmatch(left.name):
                        left.unlink(missing_ok=True)
                yield
            finally:
                path.unlink(missing_ok=True)
            return
        finally:
            os.close(descriptor)


def hold(descriptor: int, *, wait: bool = True) -> bool:
    """Lock an open file or folder until it is closed; without `wait`, return False if it is locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
