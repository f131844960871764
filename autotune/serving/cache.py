"""Tuned configurations on disk: `ROOT/<slug>/device.json` and `ROOT/<slug>/<kernel>.json`.

This module owns paths and atomic writes, `cache_schema` the text of the files, and `record_merge` the choice
of older results to keep.
"""
# ruff: noqa: PTH110, PTH208
# Reading uses plain strings. Only functions that write import pathlib, tempfile and `files`: these three cost
# more than all other imports of a look-up.

from __future__ import annotations

import os
from collections.abc import Callable
from errno import EINVAL, ENAMETOOLONG
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, TypeVar

from autotune.core.frozen import replace
from autotune.core.json_values import is_name
from autotune.core.packaged import packaged_folder
from autotune.core.records import DeviceInfo, Entry, KernelRecord
from autotune.errors import CacheError, InputError, Overtaken, WriteError
from autotune.serving.cache_schema import damaged, device_text, parse_device, parse_record, record_text

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")
Folder = str | os.PathLike[str]
Stamp = tuple[int, int, int] | None  # of a file, taken before it was read; None: it did not exist

VARIABLE = "AUTOTUNE_CACHE"
DEVICE_FILE = "device.json"
OBJECTIVE = "objective."  # prefix of folders of results whose objective is not the time
_DEVICE = "device"  # the file's stem, which no kernel can have
_contents: dict[str, tuple[Stamp, Any]] = {}  # of the files that were read, by path


def device_path(root: str, folder: str) -> str:
    """The file that describes a device."""
    return f"{root}/{folder}/{DEVICE_FILE}"


def objective_root(root: str, objective: str) -> str:
    """The folder of results for an objective; no device's folder has a dot in its name."""
    return root if objective == "time" else f"{root}/{OBJECTIVE}{objective}"


def record_path(root: str, folder: str, kernel: str) -> str:
    """The file with a kernel's results on a device; raises InputError if the name cannot be a kernel's."""
    if kernel == _DEVICE:
        raise InputError(f"a kernel cannot be called {kernel!r}: the cache has a file of that name")
    if not is_name(kernel):
        stem, is_file, _ = str(kernel).rpartition("/")[2].partition(".")
        name = (
            f"the kernel's name, such as {stem}"
            if is_file and is_name(stem)
            else "letters, digits and underscores"
        )
        raise InputError(
            f"{kernel!r} is not the name of a kernel; write {name}, as the space file does after `kernel:`"
        )
    return f"{root}/{folder}/{kernel}.json"


def read_device(path: str) -> DeviceInfo:
    """Read a device's file; raises CacheError when it is missing, damaged or of another schema."""
    return _parsed_file(path, parse_device)


def read_record(path: str) -> KernelRecord:
    """Read a kernel's file; raises CacheError when it is missing, damaged or of another schema."""
    return _parsed_file(path, parse_record)


def _parsed_file(path: str, parse: Callable[[str, str], T]) -> T:
    """The content of a file, which is parsed again only after a change."""
    current = stamp(path)
    known = _contents.get(path)
    if known is None or known[0] != current:
        _contents[path] = known = (current, parse(read_text(path), path))
    content: T = known[1]
    return content


def stamp(path: str) -> Stamp:
    """Identifies the state of a file; None without a file; raises CacheError if it cannot be read."""
    try:
        status = os.stat(path)  # noqa: PTH116 - most of the cost of a memoised look-up
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == ENAMETOOLONG:  # device names may have any length
            return None
        raise CacheError(f"{path}: cannot be read: {error.strerror}") from None
    return status.st_mtime_ns, status.st_size, status.st_ino


def folders(root: str) -> list[str]:
    """The device folders of a cache, sorted; empty if there is no such cache."""
    return [name for name in _file_names(root) if "." not in name]


def _file_names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise CacheError(f"{folder}: cannot be read: {error.strerror}") from None


def kernels(root: str) -> list[str]:
    """The kernels that have results on any device in a cache, sorted."""
    names = {name for folder in folders(root) for name in _file_names(f"{root}/{folder}")}
    stored = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(name for name in stored if is_name(name) and name != _DEVICE)


def read_roots(argument: Folder | None = None) -> tuple[str, ...]:
    """The caches to read, in the order in which they are asked.

    The argument alone, else AUTOTUNE_CACHE alone, else `./cache` and then autotune's own cache. Raises
    InputError if the argument is not a path.
    """
    chosen = _chosen_root(argument)
    return (chosen,) if chosen else ("cache", packaged_folder("cache"))


def _chosen_root(argument: Folder | None) -> str | None:
    chosen = argument or os.environ.get(VARIABLE)
    path = os.fspath(chosen) if isinstance(chosen, os.PathLike) else chosen
    if path is None or isinstance(path, str):
        return path
    raise InputError(f"cache {argument!r}: expected the path of a folder")


def writable_root(argument: Folder | None = None) -> Path:
    """The cache to write, which need not exist: the argument, else AUTOTUNE_CACHE, else `./cache`.

    Raises InputError for a folder inside the installed package, and if the argument is not a path.
    """
    from pathlib import Path

    root = Path(_chosen_root(argument) or "cache")
    if root.resolve().is_relative_to(Path(__file__).resolve().parents[1]):
        raise InputError(
            f"{root}: belongs to the installed package; choose another folder with --cache or {VARIABLE}"
        )
    return root


def check_writable(
    root: Folder, device: DeviceInfo | None = None, kernel: str | None = None
) -> KernelRecord | None:
    """Check, before a search, that its result can be stored; return the kernel's record. Leaves no file.

    Raises:
        WriteError: The folder cannot be written.
        CacheError: The device's folder belongs to another device, or the kernel's file cannot be read.
    """
    import tempfile
    from pathlib import Path

    folder = Path(root) / device.slug if device else Path(root)
    if device:
        _require_unlinked(folder)
    existing = folder
    while not os.path.lexists(existing):
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        from autotune.processes.files import why_unwritable

        raise WriteError(
            f"{folder}: the cache cannot be written: {why_unwritable(existing, error)}; "
            f"choose another folder with --cache or {VARIABLE}"
        ) from None
    if device:
        _require_same_device(folder, device)
        path = record_path(os.fspath(root), device.slug, kernel) if kernel else None
        if path and os.path.exists(path):
            return read_record(path)
    return None


def store(
    root: Folder, device: DeviceInfo, record: KernelRecord, *, seen: tuple[Entry, ...] | None = None
) -> Path:
    """Add a record's entries to the kernel's file of a device, atomically, and return its path.

    An entry replaces the stored entry for the same sizes and element type; other entries stay, and so do
    tables of variants for other ranges. The rest of the record is replaced. Two processes may store at once
    without losing results.

    Args:
        root: The cache.
        device: The results' device.
        record: The new entries, with the kernel's present parameters, constraints and launches.
        seen: The stored entries that the new ones were measured against; None replaces any.

    Raises:
        Overtaken: The stored entries differ from `seen`.
        CacheError: The folder belongs to another device, or cannot be written.
    """
    from pathlib import Path

    from autotune.serving.record_merge import merged, replaced

    path = record_path(os.fspath(root), device.slug, record.kernel)

    stored = record

    def text() -> str:
        nonlocal stored
        old = read_record(path) if os.path.exists(path) else replace(record, entries=())
        if seen is not None and seen != replaced(old, record):
            raise Overtaken(f"{path}: another process has stored a result in the meantime")
        stored = merged(old, record)
        return record_text(stored)

    written = _write(path, device, text)  # which calls `text`, so that `stored` is known
    _contents[path] = written, stored
    return Path(path)


def store_beside(root: Folder, device: DeviceInfo, name: str, text: Callable[[], str]) -> Path:
    """Write a file about a device next to its results; raises CacheError if that fails.

    `text` is called while no other process writes there, so it may read the present file.
    """
    from pathlib import Path

    path = Path(root, device.slug, name)
    _write(os.fspath(path), device, text)
    return path


def _write(name: str, device: DeviceInfo, text: Callable[[], str]) -> Stamp:
    """Write a file next to the device's own; `text` is called while no other process writes there."""
    from pathlib import Path

    from autotune.processes.files import locked, replace_file, writing

    path = Path(name)
    _require_unlinked(path.parent)
    with writing(path, CacheError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.parent):
            _require_same_device(path.parent, device)
            content = text()
            replace_file(path.parent / DEVICE_FILE, device_text(device))
            replace_file(path, content)
            written = stamp(name)
    return written


def _require_unlinked(folder: Path) -> None:
    """Raise CacheError if the folder of a device or an objective is a link.

    Whoever made the link would choose what is overwritten. The cache's own folder, which the user names, may
    be a link.
    """
    inside = (folder, folder.parent) if folder.parent.name.startswith(OBJECTIVE) else (folder,)
    for place in inside:
        if place.is_symlink():
            raise CacheError(
                f"{place}: is a link, through which nothing is written; move it away, or choose another "
                f"folder with --cache or {VARIABLE}"
            )


def _require_same_device(folder: Path, device: DeviceInfo) -> None:
    path = folder / DEVICE_FILE
    if not path.exists():
        return
    known = read_device(str(path))
    if not same_device(known, device):
        raise CacheError(
            f"{path}: describes {known.name} ({known.architecture}), but the results are of "
            f"{device.name} ({device.architecture}); choose another cache folder, or remove this one"
        )


def same_device(device: DeviceInfo, other: DeviceInfo) -> bool:
    """True if two descriptions are of one device model, regardless of drivers."""
    return (device.name, device.architecture) == (other.name, other.architecture)


def read_text(path: str) -> str:
    """The text of a file of a cache; raises CacheError when it cannot be read."""
    try:
        with open(path, encoding="utf-8", opener=_open_file) as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise damaged(path, error) from None
    except OSError as error:
        raise CacheError(f"{path}: cannot be read: {error.strerror}") from None


def _open_file(path: str, flags: int) -> int:
    """Open a file for reading; raises OSError for a pipe or a device, which may never end."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if not S_ISREG(mode) and not S_ISDIR(mode):
        os.close(descriptor)
        raise OSError(EINVAL, "not a file")
    return descriptor
