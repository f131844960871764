"""Empty files in place of headers that are not there, for a kernel may need none of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from autotune.compilers.kernel_source import missing_headers
from autotune.errors import WriteError


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
    try:
        searched.mkdir(parents=True, exist_ok=True)
        for header in dict.fromkeys(missing):
            place = Path(os.path.normpath(searched / header))
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("x") as out:
                out.write(f"// In place of {header}, which was not found: put the real one here.\n")
    except OSError as error:
        raise WriteError(f"{error.filename}: cannot be written: {error.strerror}") from None
    return searched.relative_to(path.parent).as_posix()
