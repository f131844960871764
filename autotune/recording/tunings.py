"""The file of `autotune record`: what programs tuned as they ran, and what they did not find in the cache."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from autotune.core import json_values as values
from autotune.core.records import Value
from autotune.errors import InputError
from autotune.processes.files import locked, read_foreign, replace_file, writing

DEFAULT = "recorded.json"
READ_BY = ("3.6", "3.9")  # versions of Triton whose cache is known; tests run with each
_SCHEMA = 1
_MAX_NAME = 150  # letters of a function in the name of Triton's file

Plain = Value | None


@dataclass(frozen=True)
class RecordedArray:
    """An array of a call."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Tuning:
    """A kernel under `@triton.autotune` and one key with which a program called it."""

    function: str  # the kernel's name
    file: str  # its source
    triton: str  # the version
    target: str  # of Triton, such as `cuda:90`
    key: tuple[Plain, ...]  # values of the names that the decorator lists, and the type of each array
    scalars: Mapping[str, Plain]  # the other arguments of the first such call, by parameter
    arrays: Mapping[str, RecordedArray]  # of that call
    passed: tuple[str, ...]  # the kernel's parameters that are no constants, in order
    parameters: tuple[str, ...]  # that the program's configurations give values to, without Triton's options
    configurations: int  # their number, after pruning
    has_hook: bool  # true if one of them calls a function of the program first
    best: Mapping[str, Plain]  # as Triton chose, with its options
    seconds: float  # spent tuning; 0 if the result was there already
    digest: str  # of all that Triton's cache depends on; empty for a version that is not in READ_BY

    @property
    def identity(self) -> tuple[object, ...]:
        """A later tuning with the same value is of the same call."""
        return self.function, self.file, self.triton, self.target, self.key, self.parameters

    @property
    def label(self) -> str:
        """The kernel and the key, for messages."""
        return f"{self.function} ({', '.join(map(str, self.key))})"

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of the call, with what stands for its arrays."""
        arrays = {
            name: SimpleNamespace(dtype=f"torch.{array.dtype}", shape=array.shape)
            for name, array in self.arrays.items()
        }
        return {**self.scalars, **arrays}

    @property
    def place(self) -> Path:
        """Triton's file for the result, below its cache's folder."""
        folder = base64.b32encode(bytes.fromhex(self.digest)).decode().rstrip("=")
        return Path(folder, f"{self.function[:_MAX_NAME]}.autotune.json")


def read_recorded(path: Path) -> tuple[Tuning, ...]:
    """Read a recorded file; raises InputError if it cannot be read or is damaged."""
    if not path.exists():
        raise InputError(f"{path}: no such file; `autotune record -- PROGRAM` writes recorded.json")
    return read_foreign(path, _read, "is no file of `autotune record`")


def _read(text: str) -> tuple[Tuning, ...]:
    content = values.load_object(text, _SCHEMA)
    return values.list_of(_tuning)(content.get("tunings"), "tunings")  # type: ignore[no-any-return]


def add_tuning(path: Path, new: Tuning) -> None:
    """Add a tuning to a file, also from several processes; one of the same call is replaced.

    Raises:
        InputError: The file that is there is damaged.
        WriteError: It cannot be written.
    """
    try:
        _tuning(json.loads(json.dumps(dataclasses.asdict(new))), "tunings")  # as it will be read
    except values.Damaged as error:
        raise InputError(f"a kernel cannot be recorded: {error}") from None
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.parent):
            known = {tuning.identity: tuning for tuning in (read_recorded(path) if path.exists() else ())}
            before = known.get(new.identity)
            seconds = max(new.seconds, before.seconds if before else 0.0)  # a later run finds the result
            known[new.identity] = dataclasses.replace(new, seconds=seconds)
            rows = [dataclasses.asdict(tuning) for tuning in known.values()]
            replace_file(path, json.dumps({"schema": _SCHEMA, "tunings": rows}, indent=1) + "\n")


def triton_folder() -> Path:
    """The folder of Triton's cache, as Triton finds it."""
    return Path(os.environ.get("TRITON_CACHE_DIR") or Path.home() / ".triton" / "cache")


def is_known(version: str) -> bool:
    """True for a version of Triton whose cache is known."""
    return ".".join(version.split(".")[:2]) in READ_BY


_plain = values.nullable(values.plain)
_READERS = {
    "function": values.name,
    "file": values.text,
    "triton": values.text,
    "target": values.text,
    "key": values.list_of(_plain),
    "scalars": values.mapping_of(_plain, values.name),
    "arrays": values.mapping_of(
        lambda value, place: values.record(
            RecordedArray, {"dtype": values.text, "shape": values.list_of(values.integer)}, (), value, place
        ),
        values.name,
    ),
    "passed": values.list_of(values.name),
    "parameters": values.list_of(values.name),
    "configurations": values.size,
    "has_hook": values.truth,
    "best": values.mapping_of(_plain, values.name),
    "seconds": values.amount,
    "digest": values.reader(
        lambda value: (
            isinstance(value, str) and len(value) in (0, 64) and not set(value) - set("0123456789abcdef")
        ),
        "a SHA-256 in hexadecimal digits, or nothing",
    ),
}


def _tuning(data: object, place: str) -> Tuning:
    return values.record(Tuning, _READERS, (), data, place)
