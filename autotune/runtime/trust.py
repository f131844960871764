"""The parts of a cache that may become code.

A cache is data: whoever writes a record chooses numbers, not programs. But a record names its kernel's source
and options of its compiler, and binaries may be stored with it. So a source is compiled only if it is in the
cache's project; and only a cache that the program trusts gives a compiler options that are not known to be
harmless (`serving.allowed_options`), and a GPU its binaries.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from autotune.core.packaged import packaged_folder
from autotune.errors import Untrusted
from autotune.serving.cache import OBJECTIVE, Folder


@dataclass(frozen=True)
class Trust:
    """The folder whose files the program trusts as its own code, besides what comes with autotune."""

    folder: Folder | None = None

    def covers(self, path: Folder) -> bool:
        """True if a cache or a file is trusted."""
        trusted = packaged_folder("cache") if self.folder is None else self.folder
        return any(_is_inside(Path(path), Path(folder)) for folder in {packaged_folder("cache"), trusted})

    def source(self, root: Folder, named: str) -> Path | None:
        """The source that a record of a cache names, None without such a file.

        Raises Untrusted for a file outside the cache's project that is not trusted.
        """
        path = _named(root, named)
        try:
            if not path.is_file():
                return None
            if self.covers(path) or is_in_project(root, named):
                return path
        except (OSError, ValueError):  # no file can have this name
            return None
        raise Untrusted(
            f"{root}: a result names the source {named}, which is outside {_project(root)}, the project of "
            "this cache, and so is not compiled; if it is yours, name it (source=, --source) or a folder to "
            "trust (trusted=, --trusted)"
        )


def is_in_project(root: Folder, named: str) -> bool:
    """True if the source that a record of a cache names is, or would be, in the cache's project."""
    try:
        return _is_inside(_named(root, named), _project(root))
    except (OSError, ValueError):
        return False


def _named(root: Folder, named: str) -> Path:
    """The path that a record of a cache names: relative to the cache, and shown as the cache is."""
    path = Path(os.path.normpath(Path(root).resolve() / named))
    return path if Path(root).is_absolute() else Path(os.path.relpath(path))


def _project(cache: Folder) -> Path:
    """The folder whose sources the records of a cache may name.

    The current folder if the cache is in it, as for a program that runs in its project; else the folder that
    holds the cache. The root of the file system is nobody's project.
    """
    here, root = Path.cwd(), Path(os.path.abspath(cache))  # noqa: PTH100 - of the name, not a link's end
    holder = root.parent.parent if root.name.startswith(OBJECTIVE) else root.parent
    project = here if here in root.parents else holder
    return root if project == project.parent else project


def _is_inside(path: Path, folder: Path) -> bool:
    """True if a path is a folder or in it once all links are followed."""
    return path.resolve().is_relative_to(folder.resolve())
