"""Files that several processes share: they are locked, and replaced as a whole.

Writing never follows a symbolic link.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import ELOOP
from io import FileIO
from pathlib import Path
from typing import TypeVar

from autotune.core.json_values import Damaged, NoJson
from autotune.core.runs_folder import RUNS
from autotune.errors import AutotuneError, InputError, WriteError

T = TypeVar("T")

_OPENED = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_BYTES = 2**26  # of a file that others may have written
_KEPT_SHARE = 0.9  # of a folder's limit, after removing files
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")


def why_unwritable(folder: Path, error: OSError) -> str:
    """The reason why a folder cannot be written: a file has its name, or the system's message."""
    with suppress(OSError):  # a folder that may not be looked into
        for place in (folder, *folder.parents):
            if place.is_file():
                return f"{place} is a file, not a folder: move it away"
    return str(error.strerror)


def require_unlinked(path: Path) -> None:
    """Raise OSError for a file in `runs/` if that is a link: its maker would choose what is overwritten."""
    if RUNS in path.parents and RUNS.is_symlink():
        raise OSError(ELOOP, f"{RUNS} is a link, through which nothing is written: move it away", str(path))


def replace_file(path: Path, content: str | bytes) -> None:
    """Replace a file atomically and sync it; lock a folder with `locked` if others write to it."""
    replacement(path, content).close()


def replacement(path: Path, content: str | bytes) -> FileIO:
    """Replace a file as `replace_file` does; return the new one, which is locked and open to append to."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    file = open_to_append(temporary, os.O_EXCL)
    try:
        lock(file.fileno())  # before others can find it
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        file.close()
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return file


@contextmanager
def writing(target: object, refused: type[AutotuneError] = WriteError) -> Iterator[None]:
    """Raise an error that names what cannot be written, such as a path, in place of an OSError."""
    try:
        yield
    except OSError as error:
        raise refused(f"{target}: cannot be written: {error.strerror or error}") from None


def write_output(path: Path, content: str | bytes) -> None:
    """Write what a user asked for: a file is replaced as a whole, and a pipe or a device written to.

    A link stays, and the file that it names is replaced. Raises WriteError.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        is_stream = path.is_relative_to("/dev") or (path.exists() and not path.is_file())
        if is_stream:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        else:
            replace_file(path.resolve(), content)


def open_to_append(path: Path, flags: int = 0) -> FileIO:
    """Open or create a file to append to, unbuffered and without following a link."""
    return FileIO(path, "a+", opener=lambda name, usual: os.open(name, usual | _OPENED | flags, 0o666))


def open_locked(path: Path, patience_s: float) -> FileIO | None:
    """Open or create a file to append to, and lock it until it is closed; None if it stays locked so long."""
    end_s = time.monotonic() + patience_s
    while True:
        file = open_to_append(path)
        is_locked = lock(file.fileno(), wait=False)
        if is_locked and is_at(path, file.fileno()):
            return file
        file.close()  # another process holds it, or has replaced it just now
        if not is_locked:
            if time.monotonic() > end_s:
                return None
            time.sleep(patience_s / 50)


def read_foreign(path: Path, read: Callable[[str], T], refusal: str) -> T:
    """Read a text file that others may have written, by `read`, which raises Damaged or NoJson.

    Raises InputError if it cannot be read, is too long, or is damaged; `refusal` begins the message then.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise InputError(f"{path}: {refusal}: it holds more than {_MOST_BYTES >> 20} MiB")
        return read(data.decode())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (Damaged, NoJson, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {refusal}: {error}") from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock file, and remove temporary files that a killed process left there.

    The lock file is removed at the end, so a process that waited for it checks that it is still in place.
    """
    path = folder / ".lock"
    while True:
        descriptor = os.open(path, _OPENED | os.O_RDWR, 0o666)
        try:
            lock(descriptor)
            if not is_at(path, descriptor):
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


def lock(descriptor: int, *, wait: bool = True) -> bool:
    """Lock an open file or folder until it is closed; without `wait`, return False if it is locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def is_at(path: Path, descriptor: int) -> bool:
    """True if a path still names the file that is open, which another process may have replaced."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def user_folder(name: str) -> Path:
    """A folder of autotune in the user's cache folder; one without a home cannot write to it."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        root = chosen if chosen.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        root = Path("/.cache")
    return root / "autotune" / name


def remove_oldest(folder: Path, limit_bytes: int) -> None:
    """Remove the least recently used files of a folder if it exceeds a limit; raises OSError."""
    with os.scandir(folder) as entries:
        files = [(entry.stat(follow_symlinks=False), Path(entry.path)) for entry in entries]
    total = sum(status.st_size for status, _ in files)
    if total <= limit_bytes:
        return
    for status, path in sorted(files, key=lambda item: item[0].st_mtime_ns):
        if total <= limit_bytes * _KEPT_SHARE:
            return
        with suppress(FileNotFoundError):  # another process removed it
            path.unlink()
        total -= status.st_size
