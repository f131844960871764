"""Text files of other tools, compressed or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from autotune.errors import InputError
from autotune.processes.files import write_output

_GZIP = b"\x1f\x8b"
MAX_BYTES = 2**28  # of an uncompressed file: results of a million configurations


def read_text(path: Path) -> str:
    """Read a text file, compressed by gzip or not; raises InputError."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_GZIP))
            data = start + file.read(MAX_BYTES)
        if start == _GZIP:
            with gzip.GzipFile(fileobj=BytesIO(data)) as unpacked:
                data = unpacked.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError(f"{path}: holds more than {MAX_BYTES >> 20} MiB; split it")
        return data.decode(errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged: {error}") from None


def require_own_kind(path: Path, kind: str, suffixes: Sequence[str], option: str) -> None:
    """Raise InputError if a file is there that is not of the kind to be written, as its suffix says.

    One that is empty, or a pipe, may be replaced. The message names the kind, "a CSV file", and the option.
    """
    suffix = (path.with_suffix("") if path.suffix == ".gz" else path).suffix
    if path.is_file() and path.stat().st_size and suffix.lower() not in suffixes:
        raise InputError(
            f"{path}: exists and is not {kind} ({' or '.join(suffixes)}); choose another file with {option}"
        )


def write_text(path: Path, text: str) -> None:
    """Write a text file, compressed if its name ends in .gz; the same text gives the same bytes."""
    write_output(path, encoded(text, path))


def encoded(text: str, path: Path) -> bytes:
    """The bytes of a file: compressed by gzip, without a time stamp, if its name ends in .gz."""
    data = text.encode()
    return gzip.compress(data, mtime=0) if path.suffix == ".gz" else data
