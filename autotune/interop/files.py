"""Text of foreign files, compressed or not, and what is refused of it."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from autotune.errors import InputError
from autotune.model import Config, Value

_GZIP = b"\x1f\x8b"


def read_text(path: Path) -> str:
    """The text of a file; gzip is told by its first bytes. Raises InputError."""
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if data.startswith(_GZIP) else data).decode(errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged: {error}") from None


def write_text(path: Path, text: str) -> None:
    """Write a file, compressed when its name ends in .gz; the same text gives the same bytes."""
    data = text.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def parse_json(text: str, path: Path) -> dict[str, Any]:
    """A JSON object; raises InputError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    return mapping(data, path, "the file")


def mapping(value: object, path: Path, place: str) -> dict[str, Any]:
    """The value as an object; raises InputError naming the place."""
    if not isinstance(value, dict):
        raise InputError(f"{path}: {place}: expected an object, found {str(value)[:60]!r}")
    return value


def config(value: Mapping[str, Any], names: Collection[str], path: Path, place: str) -> Config:
    """The parameters' values in a mapping; raises InputError when one is missing or no plain value."""
    found: dict[str, Value] = {}
    for name in names:
        item = value.get(name)
        if not isinstance(item, bool | int | float | str):
            raise InputError(
                f"{path}: {place}: {name}: expected a number, text or truth value, found {item!r}"
            )
        found[name] = item
    return Config(found)


def names_of(path: Path) -> tuple[str, str]:
    """Kernel and device as the hub of recorded spaces names files: KERNEL/DEVICE.json.gz."""
    device = path.name.split(".json")[0].removesuffix("_T4")
    return path.resolve().parent.name, device
