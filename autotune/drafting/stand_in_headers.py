"""Headers that are not there: empty files in their place, for a kernel may need none, or where they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from autotune.compilers.source_text import missing_headers
from autotune.processes.files import writing
from autotune.sources.files import files_around


def write_stand_ins(path: Path, include_dirs: Sequence[Path], folder: Path) -> str:
    """Write an empty file into a folder for each header that a source and its `include_dirs` lack.

    Nothing is written if one of them has an absolute path.

    Returns:
        The folder to search for them, as the space file names it; empty if nothing was written. It lies so
        deep that `../own.h` stays inside.
    """
    missing = [Path(os.path.normpath(header)) for header in missing_headers(path, include_dirs)]
    if not missing or any(header.is_absolute() for header in missing):
        return ""
    depth = max(header.parts.count("..") for header in missing)
    searched = folder.joinpath(*["up"] * depth)
    with writing(folder):
        searched.mkdir(parents=True, exist_ok=True)
        for header in dict.fromkeys(missing):
            place = Path(os.path.normpath(searched / header))
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("x") as out:
                out.write(f"// In place of {header}, which was not found: put the real one here.\n")
    return searched.relative_to(path.parent).as_posix()


def folders_of_headers(path: Path, missing: Sequence[str], stand_ins: Path) -> list[str]:
    """The folders around a source that have headers which it misses, relative to its own.

    It passes over the folder `stand_ins`.
    """
    here = path.resolve().parent
    files = [file for file in files_around(path) if stand_ins.resolve() not in file.parents]
    folders_by_name = {}
    for header in missing:
        wanted = Path(header).parts
        folders = [file.parents[len(wanted) - 1] for file in files if file.parts[-len(wanted) :] == wanted]
        if folders:
            nearest = min(folders, key=lambda folder: len(Path(os.path.relpath(folder, here)).parts))
            folders_by_name[os.path.relpath(nearest, here)] = header
    return [*folders_by_name]
