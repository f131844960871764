"""Files that several processes share: they are locked, and replaced as a whole.

Writing never follows a symbolic link.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OPENED = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_KEPT_SHARE = 0.9  # of a folder's limit, after removing files
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")


def why_unwritable(folder: Path, error: OSError) -> str:
    """Why nothing can be written into a folder: a file has its name, or what the system says."""
    with suppress(OSError):  # a folder that may not be looked into
        for place in (folder, *folder.parents):
            if place.is_file():
                return f"{place} is a file, not a folder: move it away"
    return str(error.strerror)


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


def user_folder(name: str) -> Path | None:
    """A folder of autotune in the user's cache folder; None for a user without a home."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        root = chosen if chosen.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return root / "autotune" / name


def remove_oldest(folder: Path, limit_bytes: int) -> None:
    """Remove the least recently used files of a folder if it exceeds a limit; raises OSError."""
    with os.scandir(folder) as entries:
        found = [(entry.stat(follow_symlinks=False), Path(entry.path)) for entry in entries]
    total = sum(status.st_size for status, _ in found)
    if total <= limit_bytes:
        return
    for status, path in sorted(found, key=lambda item: item[0].st_mtime_ns):
        if total <= limit_bytes * _KEPT_SHARE:
            return
        with suppress(FileNotFoundError):  # another process removed it
            path.unlink()
        total -= status.st_size
