"""Text of foreign files, compressed or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from autotune.core import json_values as values
from autotune.core.records import Config
from autotune.errors import InputError, WriteError

_GZIP = b"\x1f\x8b"
MAX_BYTES = 2**28  # of a file as it is unpacked: results of a million configurations


def read_text(path: Path) -> str:
    """The text of a file; gzip is told by its first bytes. Raises InputError."""
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


def write_text(path: Path, text: str) -> None:
    """Write a file, compressed when its name ends in .gz; the same text gives the same bytes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compressed(text) if path.suffix == ".gz" else text.encode())
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror}") from None


def compressed(text: str) -> bytes:
    """A text as gzip writes it, without the time."""
    return gzip.compress(text.encode(), mtime=0)


def config(value: Mapping[str, Any], names: Collection[str], place: str) -> Config:
    """The parameters' values in a mapping; raises Damaged when one is missing or no plain value."""
    return Config({name: values.plain(value.get(name), f"{place}.{name}") for name in names})


def names_of(path: Path) -> tuple[str, str]:
    """Kernel and device as the hub of recorded spaces names files: KERNEL/DEVICE.json.gz."""
    device = path.name.split(".json")[0].removesuffix("_T4")
    return path.resolve().parent.name, device
